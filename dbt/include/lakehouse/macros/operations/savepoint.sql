{% macro savepoint(model=none, relation=none, tag=none, all=false, instant=none, name=none, comment=none, dry_run=false) %}
  {%- do lakehouse_operation('savepoint', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'instant': instant, 'name': name, 'comment': comment, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
