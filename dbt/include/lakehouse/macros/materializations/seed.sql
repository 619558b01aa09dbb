{% materialization seed, adapter='lakehouse' %}
  {%- set existing_relation = adapter.get_relation(database=database, schema=schema, identifier=model['alias']) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing_relation is not none and existing_relation.is_view -%}
    {{ exceptions.raise_compiler_error("Cannot seed to '{}', it is a view".format(existing_relation.render())) }}
  {%- endif -%}

  {%- do adapter.check_seed(model) -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {%- set existing_relation = lakehouse_after_pre_hooks(pre_hooks, existing_relation) %}

  {%- set response = adapter.write_seed(target_relation, agate_table, model, existing_relation) -%}
  {%- do lakehouse_main('-- ' ~ (agate_table.rows | length) ~ ' row(s) of ' ~ model['original_file_path'], response) -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
