-- The state that an order was left in by the newest change about it.
with newest as (
    select o_orderkey, max(struct(changed_at, loaded_at)) as last from feed_orders group by o_orderkey
)
select distinct
    o_orderkey as order_key, o_custkey as customer_key, o_orderstatus as status, o_totalprice as total_price, o_orderdate as order_date,
    cast(date_format(o_orderdate, 'yyyy') as int) as order_year, o_orderpriority as priority, o_clerk as clerk,
    o_shippriority as ship_priority, o_comment as comment, op, changed_at, loaded_at
from feed_orders join newest using (o_orderkey)
where struct(changed_at, loaded_at) = last and op in ('I', 'U')
