{% macro writers(model=none, relation=none, tag=none, all=false) %}
  {%- do lakehouse_operation('writers', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {}, kwargs) -%}
{% endmacro %}
