select
    cast(order_id as bigint) as order_id,
    cast(customer_id as bigint) as customer_id,
    cast(order_date as date) as order_date,
    status,
    cast(amount as decimal(10, 2)) as amount,
    cast(changed_on as date) as changed_on
from {{ ref('order_events') }}
where changed_on <= '{{ var("through") }}'
