{# The script that runs for a Python model: the user's code, and dbt's functions for ref, source and config. #}
{% macro py_write_table(compiled_code, target_relation) %}
{{ compiled_code }}
{% endmacro %}
