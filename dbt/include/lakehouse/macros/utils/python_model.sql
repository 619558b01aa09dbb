{# The script that runs for a Python model: the user's code, from the first line on, and dbt's functions for ref, source and config. #}
{% macro py_write_table(compiled_code, target_relation) -%}
{{ compiled_code }}
{% endmacro %}
