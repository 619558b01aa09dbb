{% macro repair(model=none, relation=none, tag=none, all=false, accept_future=false, trust_files=false, accept_lost_archive=false, dry_run=false) %}
  {%- do lakehouse_operation('repair', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'accept_future': accept_future, 'trust_files': trust_files,
    'accept_lost_archive': accept_lost_archive, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
