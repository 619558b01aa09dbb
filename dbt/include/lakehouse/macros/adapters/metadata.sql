{% macro lakehouse__list_schemas(database) %}
  {{ return(adapter.list_schemas(database)) }}
{% endmacro %}

{% macro lakehouse__generate_database_name(custom_database_name=none, node=none) %}
  {% do return(None) %}
{% endmacro %}

{% macro lakehouse__make_temp_relation(base_relation, suffix) %}
  {%- set identifier = base_relation.identifier ~ suffix -%}
  {%- set relation = base_relation.incorporate(path={'identifier': identifier}, type='view') -%}
  {% do return(relation.include(database=false, schema=false)) %}
{% endmacro %}

{% macro lakehouse__get_binding_char() %}
  {{ return('?') }}
{% endmacro %}
