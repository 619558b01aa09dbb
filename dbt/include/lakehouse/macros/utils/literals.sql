{# What stands between quotes is the text as it is given: in a literal of Spark's a backslash would escape what is behind it. #}
{% macro lakehouse__escape_single_quotes(expression) -%}
{{ expression | replace('\\', '\\\\') | replace("'", "\\'") }}
{%- endmacro %}

{#
  What is no value of the type is null, as dbt says of this macro. Not so of literals and numbers: those are what unit tests give, and one that
  is mistaken has to be an error there.

  Unit tests give whatever is a text as a literal. Of an array, map or struct that text is an expression, as there is no cast from texts to
  them: it is taken out of the literal again. Mappings and lists are such values as they stand.
#}
{% macro lakehouse__safe_cast(field, type) %}
  {%- if field is mapping or (field is sequence and field is not string) -%}
    {{ return(adapter.nested_literal(field, type)) }}
  {%- endif -%}
  {%- set expression = field -%}
  {%- set is_text = field is string and field | length > 1 and field[0] == "'" and field[-1] == "'" -%}
  {%- set is_literal = is_text or field is not string or field == 'null' -%}
  {%- if is_text and cast_from_string_unsupported_for(type) -%}
    {%- set expression = field[1:-1] | replace("\\'", "'") | replace('\\\\', '\\') -%}
  {%- endif -%}
{{ 'cast' if is_literal else 'try_cast' }}({{ expression }} as {{ type }})
{% endmacro %}
