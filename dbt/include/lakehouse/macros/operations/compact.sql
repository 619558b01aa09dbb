{% macro compact(model=none, relation=none, tag=none, all=false, op='schedule_and_run', instant=none, dry_run=false) %}
  {%- do lakehouse_operation('compact', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'op': op, 'instant': instant, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
