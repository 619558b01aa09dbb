{#
  First run: the versions as they are. Later: dbt-core's staging query finds what changed, one upsert keyed by dbt_scd_id applies it.
#}
{% materialization snapshot, adapter='lakehouse' %}
  {%- set target_table = model.get('alias', model.get('name')) -%}
  {%- set columns = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set target_relation_exists, target_relation = get_or_create_relation(
        database=none, schema=model.schema, identifier=target_table, type='table') -%}
  {%- if not target_relation.is_table -%}
    {% do exceptions.relation_wrong_type(target_relation, 'table') %}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if config.get('sql_header') -%}
    {%- do adapter.execute(config.get('sql_header')) -%}
  {%- endif -%}
  {%- do adapter.check_snapshot(model['compiled_code'], model) -%}
  {%- set strategy = strategy_dispatch(config.get('strategy'))(
        model, 'snapshotted_data', 'source_data', model['config'], target_relation_exists) -%}
  {#- dbt-core's query joins by = and takes a null key for a row that is not there, so that each run would add it again. A struct is never null. -#}
  {%- set keys = [strategy.unique_key] if strategy.unique_key is string else strategy.unique_key -%}
  {%- do strategy.update({'unique_key': 'struct(' ~ keys | join(', ') ~ ')'}) -%}

  {%- if not target_relation_exists -%}
    {%- set select = build_snapshot_table(strategy, model['compiled_code']) -%}
    {%- do check_time_data_types(select) -%}
    {%- do lakehouse_main(select, adapter.replace_relation(target_relation, select, model)) -%}
  {%- else -%}
    {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, columns, strategy) -%}
    {%- set source = adapter.snapshot_source(target_relation, sql, config.get('hard_deletes')) -%}
    {%- set select = snapshot_staging_table(strategy, source, target_relation) -%}
    {%- do check_time_data_types(select) -%}
    {%- set response = adapter.write_snapshot(target_relation, select, model, columns, config.get('dbt_valid_to_current')) -%}
    {%- do lakehouse_main(select, response) -%}
  {%- endif -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
