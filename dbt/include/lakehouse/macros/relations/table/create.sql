{# For dbt-core's own materializations (tests that store their failures, unit tests); models are written by the adapter. #}
{% macro lakehouse__create_table_as(temporary, relation, compiled_code, language='sql') %}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    create table {{ relation }} as
    {{ compiled_code }}
  {%- endif -%}
{% endmacro %}

{# As dbt-core's, but that the model's SQL begins in the first line: errors name the lines of the compiled model. #}
{% macro lakehouse__get_select_subquery(sql) %}
  {%- set names = adapter.dispatch('get_column_names', 'dbt')() | replace('\n', ' ') -%}
  {{ return('select ' ~ names ~ ' from (' ~ sql ~ '\n) as model_subq') }}
{% endmacro %}

{# Likewise, for the query that a contract is compared with. #}
{% macro lakehouse__get_empty_subquery_sql(select_sql, select_sql_header=none) %}
  {%- set header = select_sql_header if select_sql_header is not none else '' -%}
  {{ return(header ~ 'select * from (' ~ select_sql ~ '\n) as __dbt_sbq where false limit 0') }}
{% endmacro %}
