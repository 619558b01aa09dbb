{# Several rows a customer. All rows of the customers that a batch names are replaced; one row is left of a customer without orders. #}
{{ config(incremental_strategy='delete+insert', unique_key='customer_key') }}

with touched as (
    select customer_key, max(loaded_at) as loaded_at
    from {{ ref('stg_orders') }}
    group by customer_key
    {% if is_incremental() %} having max(loaded_at) > (select max(loaded_at) from {{ this }}) {% endif %}
)

select
    touched.customer_key,
    orders.order_year,
    count(orders.order_key) as orders,
    cast(sum(orders.total_price) as decimal(18, 2)) as spent,
    min(orders.order_date) as first_order,
    max(orders.order_date) as last_order,
    max(touched.loaded_at) as loaded_at
from touched
left join {{ ref('orders') }} as orders on orders.customer_key = touched.customer_key
group by touched.customer_key, orders.order_year
