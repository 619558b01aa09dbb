{# The quarters that a batch says something about are computed again and replace their partitions. #}
{{ config(incremental_strategy='insert_overwrite', partition_by=['order_year', 'order_quarter']) }}

with touched as (
    select order_year, quarter(order_date) as order_quarter, max(loaded_at) as loaded_at
    from {{ ref('stg_orders') }}
    group by order_year, quarter(order_date)
    {% if is_incremental() %} having max(loaded_at) > (select max(loaded_at) from {{ this }}) {% endif %}
)

select
    orders.order_date,
    orders.priority,
    count(*) as orders,
    cast(sum(orders.total_price) as decimal(18, 2)) as revenue,
    max(touched.loaded_at) as loaded_at,
    touched.order_year,
    touched.order_quarter
from {{ ref('orders') }} as orders
join touched on touched.order_year = orders.order_year and touched.order_quarter = quarter(orders.order_date)
group by orders.order_date, orders.priority, touched.order_year, touched.order_quarter
