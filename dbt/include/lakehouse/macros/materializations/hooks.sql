{# As dbt-core's, without the literal `commit;`: there are no transactions here. Errors say that they come from a hook. #}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {% set kind = 'hook' if pre_hooks == post_hooks else 'pre-hook' if hooks == pre_hooks else 'post-hook' %}
  {% for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) %}
    {% set rendered = adapter.hook_text(render, hook.get('sql'), kind) | trim %}
    {% if (rendered | length) > 0 %}
      {% call statement(auto_begin=False) %}
        {{ rendered }}
      {% endcall %}
    {% endif %}
    {% do adapter.end_hook() %}
  {% endfor %}
{% endmacro %}

{# What has the model's name once its hooks have run, which may have made or dropped it; they are run here. #}
{% macro lakehouse_after_pre_hooks(hooks, existing) %}
  {%- do run_hooks(hooks, inside_transaction=False) -%}
  {%- do run_hooks(hooks, inside_transaction=True) -%}
  {% do return(adapter.stored_relation(this) if hooks else existing) %}
{% endmacro %}
