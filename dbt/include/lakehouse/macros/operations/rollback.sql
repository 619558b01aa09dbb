{% macro rollback(model=none, relation=none, tag=none, all=false, instant=none, dry_run=false) %}
  {%- do lakehouse_operation('rollback', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'instant': instant, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
