{{ config(materialized='table') }}

select
    customers.country,
    count(*) as orders,
    sum(orders.amount) as revenue
from {{ ref('orders') }} as orders
join {{ ref('customers') }} as customers on customers.customer_id = orders.customer_id
where orders.status <> 'cancelled'
group by customers.country
