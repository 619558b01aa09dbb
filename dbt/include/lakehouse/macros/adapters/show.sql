{# `dbt show` runs any statement: INSERT would store as many rows as are to be shown, UPDATE and EXPLAIN have no LIMIT. #}
{% macro lakehouse__get_limit_sql(sql, limit) %}
  {{ sql }}
  {% if limit is not none and adapter.takes_limit(sql) %}
  limit {{ limit }}
  {%- endif -%}
{% endmacro %}
