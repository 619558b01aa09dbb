{% macro delete_savepoint(model=none, relation=none, tag=none, all=false, savepoint=none, dry_run=false) %}
  {%- do lakehouse_operation('delete_savepoint', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'savepoint': savepoint, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
