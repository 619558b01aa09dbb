{% macro repair(model=none, relation=none, tag=none, all=false, accept_future=false, dry_run=false) %}
  {%- do lakehouse_operation('repair', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'accept_future': accept_future, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
