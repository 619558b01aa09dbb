{% macro savepoints(model=none, relation=none, tag=none, all=false) %}
  {%- do lakehouse_operation('savepoints', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {}, kwargs) -%}
{% endmacro %}
