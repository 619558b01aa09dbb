{% macro drop_index(model=none, relation=none, tag=none, all=false, name=none, if_exists=false, dry_run=false) %}
  {%- do lakehouse_operation('drop_index', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'name': name, 'if_exists': if_exists, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
