{#
  Functions are stored in the warehouse, not in Spark's catalog; the text is what dbt logs and keeps as what was run.
  An aggregate in SQL is an expression over aggregates of its arguments; one in Python a class with accumulate and finish.
#}
{% macro lakehouse__scalar_function_sql(target_relation) %}
  {{ return(lakehouse_function_text('FUNCTION', target_relation)) }}
{% endmacro %}

{% macro lakehouse__scalar_function_python(target_relation) %}
  {{ return(lakehouse_function_text('FUNCTION', target_relation)) }}
{% endmacro %}

{% macro lakehouse__aggregate_function_sql(target_relation) %}
  {{ return(lakehouse_function_text('AGGREGATE FUNCTION', target_relation)) }}
{% endmacro %}

{% macro lakehouse__aggregate_function_python(target_relation) %}
  {{ return(lakehouse_function_text('AGGREGATE FUNCTION', target_relation)) }}
{% endmacro %}

{% macro lakehouse_function_text(noun, target_relation) %}
  {%- set volatility = model.config.get('volatility') -%}
  {%- set said = {'deterministic': 'DETERMINISTIC', 'non-deterministic': 'NOT DETERMINISTIC'}.get(volatility | string) -%}
  {%- if volatility and not said -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
  {%- set text -%}
CREATE OR REPLACE {{ noun }} {{ target_relation.render() }}({{ formatted_scalar_function_args_sql() }})
RETURNS {{ model.returns.data_type }}
{%- if model.language == 'python' %}
LANGUAGE PYTHON
HANDLER = '{{ model.config.get('entry_point') }}'
{%- if model.config.get('packages') %}
PACKAGES = ('{{ model.config.get('packages') | join("', '") }}')
{%- endif %}
{%- endif %}
{%- if said %}
{{ said }}
{%- endif %}
{{ 'AS' if model.language == 'python' else 'RETURN' }}
{{ model.compiled_code }}
  {%- endset -%}
  {{ return(text) }}
{% endmacro %}

{% macro lakehouse__formatted_scalar_function_args_sql() %}
  {%- set arguments = [] -%}
  {%- for argument in model.arguments -%}
    {%- set default = adapter.function_default(argument) -%}
    {%- do arguments.append(argument.name ~ ' ' ~ argument.data_type ~ (' DEFAULT ' ~ default if default else '')) -%}
  {%- endfor -%}
  {{ return(arguments | join(', ')) }}
{% endmacro %}

{% macro lakehouse__function_execute_build_sql(build_sql, existing_relation, target_relation) %}
  {%- do lakehouse_main(build_sql, adapter.write_function(target_relation, build_sql, model)) -%}
{% endmacro %}
