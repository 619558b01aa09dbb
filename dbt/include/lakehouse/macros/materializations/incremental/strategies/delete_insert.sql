{% macro lakehouse__get_incremental_delete_insert_sql(arg_dict) %}
  {%- set keys = arg_dict['unique_key'] -%}
  {{ return(lakehouse_increment(arg_dict, 'delete_insert', [keys] if keys is string else keys)) }}
{% endmacro %}
