{# Spark makes a table without a schema in the session's current one; here a table that holds rows for a moment stands beside the other. #}
{% macro lakehouse__make_temp_table_relation(base_relation, suffix) %}
  {{ return(api.Relation.create(
    schema=base_relation.schema,
    identifier=elementary.table_name_with_suffix(base_relation.identifier, suffix),
    type='table'
  )) }}
{% endmacro %}
