{% macro lakehouse__get_incremental_insert_overwrite_sql(arg_dict) %}
  {{ return(lakehouse_increment(arg_dict, 'insert_overwrite')) }}
{% endmacro %}
