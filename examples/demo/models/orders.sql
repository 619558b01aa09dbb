{{ config(
    materialized='incremental',
    unique_key='order_id',
    ordering_fields='changed_on',
    partition_by='order_date',
) }}

select order_id, customer_id, status, amount, changed_on, order_date
from {{ ref('stg_order_events') }}
{% if is_incremental() %}
where changed_on > (select max(changed_on) from {{ this }})
{% endif %}
