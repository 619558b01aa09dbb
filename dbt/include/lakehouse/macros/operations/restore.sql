{% macro restore(model=none, relation=none, tag=none, all=false, savepoint=none, to=none, cascade=false, accept_future=false, dry_run=false) %}
  {%- do lakehouse_operation('restore', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'savepoint': savepoint, 'to': to, 'cascade': cascade, 'accept_future': accept_future, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
