{% snapshot orders_snapshot %}
{{ config(unique_key='order_key', strategy='timestamp', updated_at='changed_at') }}

select order_key, customer_key, status, total_price, order_date, changed_at
from {{ ref('orders') }}
where order_date >= date '{{ var("followed_since") }}'

{% endsnapshot %}
