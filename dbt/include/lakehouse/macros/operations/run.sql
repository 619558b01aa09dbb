{#
  What every operation does: carry it out on the selected tables, print what came of it, fail if one of them failed.
  `selection` holds model, relation, tag and all, exactly one of them set.
#}
{% macro lakehouse_operation(operation, selection, arguments) %}
  {%- if execute -%}
    {%- set report = adapter.run_operation(operation, graph, selection, arguments) -%}
    {%- do print(report.text) -%}
    {%- if report.failures -%}
      {%- do exceptions.raise_compiler_error(operation ~ ' failed: ' ~ report.failures | join('; ')) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
