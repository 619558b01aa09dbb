{# A relation as it was. `point` is an instant, a timestamp or date, or -N: N commits before the newest. #}
{% macro at(relation, point) %}
  {{- return(adapter.relation_at(relation, point)) -}}
{% endmacro %}
