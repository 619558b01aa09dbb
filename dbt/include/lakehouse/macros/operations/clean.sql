{% macro clean(model=none, relation=none, tag=none, all=false, retain_commits=none, policy=none, retain_versions=none, retain_hours=none, dry_run=false) %}
  {%- do lakehouse_operation('clean', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'retain_commits': retain_commits, 'policy': policy, 'retain_versions': retain_versions, 'retain_hours': retain_hours, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
