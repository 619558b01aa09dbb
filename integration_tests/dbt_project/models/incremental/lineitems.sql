{{ config(
    unique_key=['order_key', 'line_number'],
    ordering_fields=['changed_at'],
    partition_by=['ship_year'],
    delete_condition="op = 'D'",
) }}

{% if is_incremental() %}
select * from {{ ref('stg_lineitems') }} where {{ only_new() }}
{% else %}
{{ newest_of_each(ref('stg_lineitems'), ['order_key', 'line_number']) }}
{% endif %}
