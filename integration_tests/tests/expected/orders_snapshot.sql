-- What each batch left of the orders that are followed, a version whenever `changed_at` was another one.
with batches as (select distinct loaded_at as seen_at from feed_orders),
newest as (
    select seen_at, o_orderkey, max(struct(changed_at, loaded_at)) as last
    from batches join feed_orders on loaded_at <= seen_at
    where o_orderdate >= date '1998-01-01'
    group by seen_at, o_orderkey
),
versions as (
    select distinct
        feed_orders.o_orderkey as order_key, o_custkey as customer_key, o_orderstatus as status, o_totalprice as total_price,
        o_orderdate as order_date, changed_at
    from newest join feed_orders
        on feed_orders.o_orderkey = newest.o_orderkey and struct(changed_at, loaded_at) = last and op in ('I', 'U')
)
select *, changed_at as dbt_valid_from, lead(changed_at) over (partition by order_key order by changed_at) as dbt_valid_to
from versions
