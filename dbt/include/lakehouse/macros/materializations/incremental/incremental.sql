{#
  No table yet, a view in its place, or a full refresh: the table is (re)placed in one commit.
  Else: the rows become a session view, and the strategy's macro writes them. A built-in strategy returns the response of its
  one write; a strategy of the user returns SQL, which is run.
#}
{% materialization incremental, adapter='lakehouse', supported_languages=['sql', 'python'] %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set strategy = lakehouse_incremental_strategy() -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {%- set existing_relation = lakehouse_after_pre_hooks(pre_hooks, existing_relation) %}

  {%- if model['language'] == 'python' -%}
    {%- call statement('main', language='python') -%}{{ py_write_table(compiled_code, target_relation) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = lakehouse_select(model['language']) -%}

  {%- if existing_relation is none or existing_relation.is_view or existing_relation.is_materialized_view or should_full_refresh() -%}
    {%- set within = lakehouse_batch_range() if strategy == 'microbatch' else none -%}
    {%- do lakehouse_main(select, adapter.replace_relation(target_relation, select, model, existing_relation, within)) -%}
  {%- else -%}
    {%- set temp_relation = make_temp_relation(target_relation) -%}
    {%- do adapter.create_session_view(temp_relation, select) -%}
    {%- set outcome = strategy_macro(lakehouse_strategy_arguments(target_relation, temp_relation)) -%}
    {%- if outcome is string -%}
      {%- call statement('main') -%}{{ outcome }}{%- endcall -%}
    {%- else -%}
      {%- do lakehouse_main(select, outcome) -%}
    {%- endif -%}
    {%- do adapter.drop_relation(temp_relation) -%}
  {%- endif -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
