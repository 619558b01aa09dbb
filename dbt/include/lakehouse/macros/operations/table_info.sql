{% macro table_info(model=none, relation=none, tag=none, all=false) %}
  {%- do lakehouse_operation('table_info', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {}, kwargs) -%}
{% endmacro %}
