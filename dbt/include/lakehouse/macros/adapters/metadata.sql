{% macro lakehouse__list_schemas(database) %}
  {{ return(adapter.list_schemas(database)) }}
{% endmacro %}

{% macro lakehouse__generate_database_name(custom_database_name=none, node=none) %}
  {%- if custom_database_name and custom_database_name | string | lower != target.database -%}
    {%- set named = node.name if node else 'a node' -%}
    {% do exceptions.raise_compiler_error(
        named ~ ": a warehouse has no databases, but '" ~ custom_database_name ~ "' is given as one (database or catalog); leave it out:"
        ~ " tables are named schema.table") %}
  {%- endif -%}
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
