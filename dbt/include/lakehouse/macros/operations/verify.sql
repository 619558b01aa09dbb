{% macro verify(model=none, relation=none, tag=none, all=false) %}
  {%- do lakehouse_operation('verify', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {}, kwargs) -%}
{% endmacro %}
