{# For dbt-core's own materializations (tests that store their failures, unit tests); models are written by the adapter. #}
{% macro lakehouse__create_table_as(temporary, relation, compiled_code, language='sql') %}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    create table {{ relation }} as
    {{ compiled_code }}
  {%- endif -%}
{% endmacro %}
