{% macro cluster(model=none, relation=none, tag=none, all=false, op='schedule_and_run', order_by=none, layout=none, partitions=none, instant=none, dry_run=false) %}
  {%- do lakehouse_operation('cluster', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {'op': op, 'order_by': order_by, 'layout': layout, 'partitions': partitions, 'instant': instant, 'dry_run': dry_run}, kwargs) -%}
{% endmacro %}
