-- Deletions are not looked at here; the first arrival of an order is kept.
select
    o_orderkey as order_key,
    any_value(o_orderdate) as order_date,
    max_by(o_orderstatus, changed_at) as status,
    max(changed_at) as changed_at,
    max_by(loaded_at, struct(changed_at, loaded_at)) as loaded_at,
    min(loaded_at) as first_loaded_at
from feed_orders
where o_orderdate >= date '1998-01-01' and op in ('I', 'U')
group by o_orderkey
