{#
  What dbt-core's materialization of materialized views asks an adapter for. The engine puts one in the place of any relation in one
  statement, so that there is no backup and no intermediate relation.
#}

{% macro lakehouse__get_create_materialized_view_as_sql(relation, sql) %}
  {{ adapter.materialized_view_text(relation, lakehouse_select('sql'), model) }}
{% endmacro %}

{% macro lakehouse__get_replace_sql(existing_relation, target_relation, sql) %}
  {%- if target_relation.is_materialized_view -%}
    {{ get_create_materialized_view_as_sql(target_relation, sql) }}
  {%- else -%}
    {{ default__get_replace_sql(existing_relation, target_relation, sql) }}
  {%- endif -%}
{% endmacro %}

{% macro lakehouse__get_materialized_view_configuration_changes(existing_relation, new_config) %}
  {{ return(adapter.materialized_view_changes(existing_relation, lakehouse_select('sql'), model)) }}
{% endmacro %}

{% macro lakehouse__get_alter_materialized_view_as_sql(
    relation, configuration_changes, sql, existing_relation, backup_relation, intermediate_relation
) %}
  {%- if configuration_changes.rebuild -%}
    {{ get_replace_sql(existing_relation, relation, sql) }}
  {%- else -%}
    {{ adapter.materialized_view_alteration(relation, lakehouse_select('sql'), configuration_changes) }}
  {%- endif -%}
{% endmacro %}

{% macro lakehouse__refresh_materialized_view(relation) %}
  refresh materialized view {{ relation }}
{% endmacro %}

{% macro lakehouse__drop_materialized_view(relation) %}
  drop materialized view if exists {{ relation }}
{% endmacro %}
