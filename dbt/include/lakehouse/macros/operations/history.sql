{% macro history(model=none, relation=none, tag=none, all=false, limit=20) %}
  {%- do lakehouse_operation('history', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'limit': limit}, kwargs) -%}
{% endmacro %}
