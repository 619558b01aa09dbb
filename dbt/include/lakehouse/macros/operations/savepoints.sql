{% macro savepoints(model=none, relation=none, tag=none, all=false, dry_run=false) %}
  {%- do lakehouse_operation('savepoints', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
