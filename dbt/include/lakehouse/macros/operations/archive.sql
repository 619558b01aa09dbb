{% macro archive(model=none, relation=none, tag=none, all=false, retain_commits=none, min_commits=none, max_commits=none, dry_run=false) %}
  {%- do lakehouse_operation('archive', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'retain_commits': retain_commits, 'min_commits': min_commits, 'max_commits': max_commits, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
