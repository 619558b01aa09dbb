select
    customers.customer_key, order_year, count(order_date) as orders, cast(sum(total_price) as decimal(18, 2)) as spent,
    min(order_date) as first_order, max(order_date) as last_order, any_value(customers.loaded_at) as loaded_at
from (select o_custkey as customer_key, max(loaded_at) as loaded_at from feed_orders group by o_custkey) as customers
left join expected_orders as orders on orders.customer_key = customers.customer_key
group by customers.customer_key, order_year
