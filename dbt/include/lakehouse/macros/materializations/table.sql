{% materialization table, adapter='lakehouse', supported_languages=['sql', 'python'] %}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {%- set existing_relation = lakehouse_after_pre_hooks(pre_hooks, existing_relation) %}

  {%- if model['language'] == 'python' -%}
    {%- call statement('main', language='python') -%}{{ py_write_table(compiled_code, target_relation) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = lakehouse_select(model['language']) -%}
  {%- do lakehouse_main(select, adapter.replace_relation(target_relation, select, model, existing_relation)) -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
