{% macro index(model=none, relation=none, tag=none, all=false, name=none, type=none, columns=none, expression=none, expression_options=none, op=none, if_not_exists=false, dry_run=false) %}
  {%- do lakehouse_operation('index', {'model': model, 'relation': relation, 'tag': tag, 'all': all}, {
    'name': name, 'type': type, 'columns': columns, 'expression': expression, 'expression_options': expression_options,
    'op': op, 'if_not_exists': if_not_exists, 'dry_run': dry_run
  }, kwargs) -%}
{% endmacro %}
