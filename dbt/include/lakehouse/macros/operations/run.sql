{#
  What every operation does: carry it out on the selected tables, print what came of it, fail if one of them failed.
  `selection` holds model, relation, tag and all, exactly one of them set; `unknown` what was given and is none of its arguments.
#}
{% macro lakehouse_operation(operation, selection, arguments, unknown) %}
  {%- if execute -%}
    {%- set report = adapter.run_operation(operation, graph, selection, arguments, unknown) -%}
    {%- do print(report.text) -%}
    {%- do report.check() -%}
  {%- endif -%}
{% endmacro %}
