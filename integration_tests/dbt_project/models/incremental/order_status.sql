{# A changed status moves the order to another partition: the index has to look for it in all of them. #}
{{ config(
    unique_key='order_key',
    ordering_fields='changed_at',
    partition_by='status',
    index='global_simple',
    merge_exclude_columns=['first_loaded_at'],
) }}

select
    order_key,
    order_date,
    status,
    changed_at,
    loaded_at,
    {% if is_incremental() -%} loaded_at {%- else -%} min(loaded_at) over (partition by order_key) {%- endif %} as first_loaded_at
from {{ ref('stg_orders') }}
where order_date >= date '{{ var("followed_since") }}' and op <> 'D'
{% if is_incremental() %} and {{ only_new() }} {% endif %}
