select
    n_name as nation, substring(cast(order_date as string), 1, 7) as month, count(distinct order_key) as orders, count(*) as lines,
    cast(sum(extended_price * (1 - discount)) as decimal(20, 4)) as revenue, r_name as region
from expected_lineitems
join expected_orders using (order_key)
join feed_customer on c_custkey = customer_key
join tpch_nation on n_nationkey = c_nationkey
join tpch_region on r_regionkey = n_regionkey
group by 1, 2, 6
