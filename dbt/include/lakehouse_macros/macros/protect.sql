{#
  on-run-start: "{{ lakehouse.protect() }}"
  Takes a savepoint of every table that this run is about to build. Commands that only render the hook (compile, docs generate) build none.
#}
{% macro protect() %}
  {%- if execute and flags.WHICH in ('run', 'build', 'seed', 'snapshot', 'retry') -%}
    {%- for line in adapter.protect_tables(graph, selected_resources) -%}
      {{- log(line, info=true) -}}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}

{#
  on-run-end: "{{ lakehouse.restore_failed(results) }}"
  Restores the tables that a failed test of error severity guards to what they were before the run.
#}
{% macro restore_failed(results) %}
  {%- if execute -%}
    {%- set lines, failures = adapter.restore_failed(results) -%}
    {%- for line in lines -%}
      {{- log(line, info=true) -}}
    {%- endfor -%}
    {%- if failures -%}
      {%- do exceptions.raise_compiler_error('not restored: ' ~ failures | join('; ')) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}
