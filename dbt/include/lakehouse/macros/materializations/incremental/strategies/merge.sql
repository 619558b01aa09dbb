{% macro lakehouse__get_incremental_merge_sql(arg_dict) %}
  {{ return(lakehouse_increment(arg_dict, 'merge')) }}
{% endmacro %}
