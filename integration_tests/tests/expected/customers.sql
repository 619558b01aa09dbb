select
    c_custkey as customer_key, c_name as name, c_address as address, c_nationkey as nation_key, c_phone as phone,
    c_acctbal as account_balance, c_mktsegment as segment, n_name as nation, r_name as region,
    count(order_key) as orders, cast(coalesce(sum(total_price), 0) as decimal(18, 2)) as spent, max(order_date) as last_order,
    named_struct('phone', c_phone, 'address', c_address) as contact
from feed_customer
join tpch_nation on n_nationkey = c_nationkey
join tpch_region on r_regionkey = n_regionkey
left join expected_orders on customer_key = c_custkey
group by all
