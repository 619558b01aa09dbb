{{ config(
    unique_key='order_key',
    ordering_fields='changed_at',
    partition_by='order_year',
    delete_condition="op = 'D'",
) }}

{% if is_incremental() %}
select * from {{ ref('stg_orders') }} where {{ only_new() }}
{% else %}
{{ newest_of_each(ref('stg_orders'), ['order_key']) }}
{% endif %}
