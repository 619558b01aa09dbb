{% macro lakehouse__drop_relation(relation) %}
  {%- do adapter.drop_relation(relation) -%}
{% endmacro %}

{% macro lakehouse__rename_relation(from_relation, to_relation) %}
  {%- do adapter.rename_relation(from_relation, to_relation) -%}
{% endmacro %}

{% macro lakehouse__truncate_relation(relation) %}
  {%- do adapter.truncate_relation(relation) -%}
{% endmacro %}
