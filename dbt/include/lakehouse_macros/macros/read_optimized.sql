{# A merge-on-read relation's base files, without the changes in its logs: older, and read at the speed of a copy-on-write table. #}
{% macro read_optimized(relation) %}
  {{- return(adapter.relation_read_optimized(relation)) -}}
{% endmacro %}
