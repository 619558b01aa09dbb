{% macro verify(model=none, relation=none, tag=none, all=false, quick=false) %}
  {%- do lakehouse_operation('verify', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'quick': quick}, kwargs) -%}
{% endmacro %}
