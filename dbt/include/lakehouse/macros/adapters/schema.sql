{% macro lakehouse__create_schema(relation) %}
  {%- do adapter.create_schema(relation) -%}
{% endmacro %}

{% macro lakehouse__drop_schema(relation) %}
  {%- do adapter.drop_schema(relation) -%}
{% endmacro %}
