{% macro repair(model=none, relation=none, tag=none, all=false, accept_future=false, trust_files=false, dry_run=false) %}
  {%- do lakehouse_operation('repair', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'accept_future': accept_future, 'trust_files': trust_files, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
