{# `dbt clone` makes a view over the other relation. #}
{% macro lakehouse__can_clone_table() %}
  {{ return(False) }}
{% endmacro %}
