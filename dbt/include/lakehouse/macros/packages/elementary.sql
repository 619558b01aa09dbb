{# Spark makes a table without a schema in the session's current one; here a table that holds rows for a moment stands beside the other. #}
{% macro lakehouse__make_temp_table_relation(base_relation, suffix) %}
  {{ return(api.Relation.create(
    schema=base_relation.schema,
    identifier=elementary.table_name_with_suffix(base_relation.identifier, suffix),
    type='table'
  )) }}
{% endmacro %}

{# The package's SQL for Databricks asks for Unity Catalog, or for what only a profile of Databricks has. #}
{% macro lakehouse__get_tables_from_information_schema(schema_tuple) %}
  {{ return(elementary.default__get_tables_from_information_schema(schema_tuple)) }}
{% endmacro %}

{% macro lakehouse__get_target_adapter_specific_fields() %}
  {{ return(elementary.default__get_target_adapter_specific_fields()) }}
{% endmacro %}

{% macro lakehouse__generate_ai_data_validation_sql(model, column_name, prompt_template, llm_model_name) %}
  {{ return(elementary.default__generate_ai_data_validation_sql(model, column_name, prompt_template, llm_model_name)) }}
{% endmacro %}

{% macro lakehouse__get_stale_test_tables(elementary_database, elementary_schema, hours, table_name_pattern, limit) %}
  {{ return(elementary.default__get_stale_test_tables(elementary_database, elementary_schema, hours, table_name_pattern, limit)) }}
{% endmacro %}
