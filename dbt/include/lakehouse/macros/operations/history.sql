{% macro history(model=none, relation=none, tag=none, all=false, limit=20, dry_run=false) %}
  {%- do lakehouse_operation('history', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'limit': limit, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
