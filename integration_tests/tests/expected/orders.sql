-- The state that an order was left in by the newest change about it.
with changes as (
    select *, row_number() over (partition by o_orderkey order by changed_at desc, loaded_at desc) as age from feed_orders
)
select
    o_orderkey as order_key, o_custkey as customer_key, o_orderstatus as status, o_totalprice as total_price, o_orderdate as order_date,
    cast(date_format(o_orderdate, 'yyyy') as int) as order_year, o_orderpriority as priority, o_clerk as clerk,
    o_shippriority as ship_priority, o_comment as comment, op, changed_at, loaded_at
from changes
where age = 1 and op in ('I', 'U')
