{# Grants are refused when configs are checked: a warehouse directory has no users. #}
{% macro lakehouse__copy_grants() %}
  {{ return(False) }}
{% endmacro %}
