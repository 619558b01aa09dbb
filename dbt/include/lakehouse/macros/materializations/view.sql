{% materialization view, adapter='lakehouse' %}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set select = lakehouse_select('sql') -%}
  {%- do lakehouse_main(select, adapter.write_view(target_relation, select, load_cached_relation(this))) -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
