{% macro downgrade(model=none, relation=none, tag=none, all=false, to=6, dry_run=false) %}
  {%- do lakehouse_operation('downgrade', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'to': to, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
