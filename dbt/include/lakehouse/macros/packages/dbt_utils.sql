{# The package's default joins rows with themselves naturally, and a row with a null in it is not equal to itself: it would be lost. #}
{% macro lakehouse__deduplicate(relation, partition_by, order_by) %}
    select * except (__dbt_place)
    from (
        select *, row_number() over (partition by {{ partition_by }} order by {{ order_by }}) as __dbt_place
        from {{ relation }}
    )
    where __dbt_place = 1
{% endmacro %}

{# The package's default counts from zero instead of from `min_value` at the edges of buckets, and downwards below `min_value`. #}
{% macro lakehouse__width_bucket(expr, min_value, max_value, num_buckets) %}
    width_bucket({{ expr }}, {{ min_value }}, {{ max_value }}, {{ num_buckets }})
{% endmacro %}

{# Spark has no `varchar` without a length, which is the type that the package casts to unless it is given another. #}
{% macro lakehouse__unpivot(relation, cast_to, exclude, remove, field_name, value_name, quote_identifiers=false) %}
    {%- set type = dbt.type_string() if cast_to | lower == 'varchar' else cast_to -%}
    {{ return(dbt_utils.default__unpivot(relation, type, exclude, remove, field_name, value_name, quote_identifiers)) }}
{% endmacro %}

{# In the package's default a backslash would escape what is behind it, so that a value with one is never found. #}
{% macro lakehouse__test_not_accepted_values(model, column_name, values, quote=true) %}
    {%- set refused = [] -%}
    {%- for value in values -%}
        {%- do refused.append(dbt.string_literal(dbt.escape_single_quotes(value | string)) if quote else value) -%}
    {%- endfor %}
    select distinct {{ column_name }} as value_field
    from {{ model }}
    where {{ column_name }} in ({{ refused | join(', ') }})
{% endmacro %}
