{{ config(incremental_strategy='append', on_schema_change='append_new_columns') }}

select * from {{ ref('stg_order_events') }}
{% if is_incremental() %} where {{ only_new() }} {% endif %}
