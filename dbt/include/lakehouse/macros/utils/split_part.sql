{# dbt-spark's takes the delimiter for a regular expression but for its first character, and fails where the text has fewer parts. #}
{% macro lakehouse__split_part(string_text, delimiter_text, part_number) %}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number or 1 }})
{% endmacro %}
