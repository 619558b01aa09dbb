{% macro verify(model=none, relation=none, tag=none, all=false, quick=false, dry_run=false) %}
  {%- do lakehouse_operation('verify', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'quick': quick, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
