{#
  The place of the first match, or 0, with the flags of the others: `i`, `m`, `s` and `x` as Java has them, `c` for its default. With
  `is_raw` backslashes are the expression's own, as in SQL's r'...'.
#}
{% macro lakehouse__regexp_instr(source_value, regexp, position=1, occurrence=1, is_raw=false, flags='') %}
  {%- if execute and (position != 1 or occurrence != 1) -%}
    {%- do exceptions.raise_compiler_error('regexp_instr: Spark finds the first match from the first character on; position and occurrence are 1') -%}
  {%- endif -%}
  {%- set given = (flags or '') | list -%}
  {%- if given | reject('in', ['c', 'i', 'm', 's', 'x']) | list -%}
    {%- do exceptions.warn("regexp_instr: of the flags '" ~ flags ~ "' only c, i, m, s and x are known here; the others are left out") -%}
  {%- endif -%}
  {%- set inline = given | select('in', ['i', 'm', 's', 'x']) | join('') -%}
  {%- set pattern = ('(?' ~ inline ~ ')' if inline else '') ~ regexp -%}
  {%- if is_raw and "'" in pattern -%}
    {%- set literal = "'" ~ pattern | replace('\\', '\\\\') | replace("'", "\\'") ~ "'" -%}
  {%- else -%}
    {%- set literal = ('r' if is_raw else '') ~ "'" ~ pattern ~ "'" -%}
  {%- endif -%}
  regexp_instr({{ source_value }}, {{ literal }})
{%- endmacro %}

{# Spark's `decimal` without a scale, which is the package's default type, rounds to whole numbers: 0.4 would be 0, and 0.5 would be 1. #}
{% macro lakehouse__test_expect_column_most_common_value_to_be_in_set(
    model, column_name, value_set, top_n, quote_values, data_type, row_condition
) %}
  {%- set type = 'decimal(38, 10)' if data_type | lower in ('decimal', 'numeric', 'dec') else data_type -%}
  {{ return(dbt_expectations.default__test_expect_column_most_common_value_to_be_in_set(
      model, column_name, value_set, top_n, quote_values, type, row_condition
  )) }}
{% endmacro %}
