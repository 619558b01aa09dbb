{# Spark has no `count(distinct ...)` as a window function: the package's SQL for Databricks does without. #}
{%- macro lakehouse___count_num_rows_in_status() -%}
  {{ return(audit_helper.databricks___count_num_rows_in_status()) }}
{%- endmacro -%}

{#
  The rows of both queries, and the sets that they make. Values are compared as text, since maps cannot be compared. The package's SQL for
  Databricks compares hashes, which leave nulls out: ('x', null) and (null, 'x') would be one row.
#}
{% macro lakehouse___generate_set_results(a_query, b_query, primary_key_columns, columns, event_time_props=none) %}
  {%- set texts = [] -%}
  {%- set named = [] -%}
  {%- for column in columns -%}
    {%- do texts.append('cast(' ~ column ~ ' as string)') -%}
    {%- do named.append('cast(' ~ column ~ ' as string) as ' ~ column) -%}
  {%- endfor -%}
  {%- set key = audit_helper._generate_null_safe_surrogate_key(primary_key_columns) -%}
  {%- for name, query in [('a', a_query), ('b', b_query)] %}
    {{ name }} as (
        select
            {{ named | join(', ') }},
            {{ key }} as dbt_audit_surrogate_key,
            row_number() over (partition by {{ key }} order by {{ texts | join(', ') }}) as dbt_audit_pk_row_num
        from ({{ query }}) as rows_{{ name }}
        {{ audit_helper.event_time_filter(event_time_props) }}
    ),
  {%- endfor %}
    a_intersect_b as (select * from a intersect select * from b),
    a_except_b as (select * from a except select * from b),
    b_except_a as (select * from b except select * from a)
{% endmacro %}

{#
  One row and column, `are_tables_identical`: whether both queries have the same rows, as often, by the number of rows and the sum of their
  hashes. Values are hashed as text, since maps have no hash, and beside them whether they are null, since nulls leave a hash as it was.
#}
{% macro lakehouse__quick_are_queries_identical(query_a, query_b, columns, event_time=none) %}
  {%- if execute -%}
    {%- set bounds = audit_helper._get_comparison_bounds(query_a, query_b, event_time) if event_time else none -%}
    {%- set hashed = [] -%}
    {%- for column in columns -%}
      {%- do hashed.append('cast(' ~ column ~ ' as string), ' ~ column ~ ' is null') -%}
    {%- endfor -%}
    {%- set measures = 'count(*) as number, sum(cast(xxhash64(' ~ hashed | join(', ') ~ ') as decimal(38, 0))) as hashes' %}

    select a.number = b.number and a.hashes <=> b.hashes as are_tables_identical
    from (select {{ measures }} from ({{ query_a }}) as rows_a {{ audit_helper.event_time_filter(bounds) }}) as a
    cross join (select {{ measures }} from ({{ query_b }}) as rows_b {{ audit_helper.event_time_filter(bounds) }}) as b
  {%- endif -%}
{% endmacro %}
