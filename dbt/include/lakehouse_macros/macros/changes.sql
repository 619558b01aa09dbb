{# Rows of a relation that changed after `begin` and not after `end`, as they are at `end`; points as in `at`, or 'earliest'. #}
{% macro changes(relation, begin='earliest', end=none) %}
  {{- return(adapter.relation_changes(relation, begin, end)) -}}
{% endmacro %}
