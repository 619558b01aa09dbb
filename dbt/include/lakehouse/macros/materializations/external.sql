{# Rows are written to a folder of files; what has the model's name in the warehouse is a view that reads them. #}
{% materialization external, adapter='lakehouse', supported_languages=['sql', 'python'] %}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- if model['language'] == 'python' -%}
    {%- call statement('main', language='python') -%}{{ py_write_table(compiled_code, target_relation) }}{%- endcall -%}
  {%- endif -%}
  {%- set select = lakehouse_select(model['language']) -%}
  {%- do lakehouse_main(select, adapter.write_external(target_relation, select, model)) -%}

  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
