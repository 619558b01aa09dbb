{% macro upgrade(model=none, relation=none, tag=none, all=false, to=9, dry_run=false) %}
  {%- do lakehouse_operation('upgrade', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'to': to, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
