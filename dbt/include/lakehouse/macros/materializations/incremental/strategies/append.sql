{% macro lakehouse__get_incremental_append_sql(arg_dict) %}
  {{ return(lakehouse_increment(arg_dict, 'append')) }}
{% endmacro %}
