{% macro lakehouse__list_schemas(database) %}
  {{ return(adapter.list_schemas(database)) }}
{% endmacro %}

{% macro lakehouse__generate_database_name(custom_database_name=none, node=none) %}
  {%- set asked = custom_database_name | string | lower if custom_database_name else none -%}
  {%- set named = node.name if node else 'a node' -%}
  {%- if asked and asked in (target.catalogs or {}) -%}
    {% do exceptions.raise_compiler_error(
        named ~ ": the catalog '" ~ custom_database_name ~ "' is attached to be read only, and nothing can be built there: leave database"
        ~ " out, and give that warehouse a target of its own") %}
  {%- elif asked and asked not in (target.database, target.catalog) -%}
    {% do exceptions.raise_compiler_error(
        named ~ ": a warehouse has no databases, but '" ~ custom_database_name ~ "' is given as one (database or catalog); leave it out:"
        ~ " tables are named schema.table") %}
  {%- endif -%}
  {% do return(target.catalog or none) %}
{% endmacro %}

{% macro lakehouse__make_temp_relation(base_relation, suffix) %}
  {%- set identifier = base_relation.identifier ~ suffix -%}
  {%- set relation = base_relation.incorporate(path={'identifier': identifier}, type='view') -%}
  {% do return(relation.include(database=false, schema=false)) %}
{% endmacro %}

{% macro lakehouse__get_binding_char() %}
  {{ return('?') }}
{% endmacro %}
