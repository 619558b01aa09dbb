{% macro get_incremental_replace_where_sql(arg_dict) %}
  {{ return(adapter.dispatch('get_incremental_replace_where_sql', 'dbt')(arg_dict)) }}
{% endmacro %}

{% macro lakehouse__get_incremental_replace_where_sql(arg_dict) %}
  {%- set predicates = arg_dict['incremental_predicates'] -%}
  {%- set predicates = [predicates] if predicates is string else predicates -%}
  {{ return(lakehouse_increment(arg_dict, 'replace_where', '(' ~ predicates | join(') and (') ~ ')')) }}
{% endmacro %}
