{# As dbt-core's, without the literal `commit;`: there are no transactions here. #}
{% macro run_hooks(hooks, inside_transaction=True) %}
  {% for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) %}
    {% set rendered = render(hook.get('sql')) | trim %}
    {% if (rendered | length) > 0 %}
      {% call statement(auto_begin=False) %}
        {{ rendered }}
      {% endcall %}
    {% endif %}
  {% endfor %}
{% endmacro %}

{# What has the model's name once its hooks have run, which may have made or dropped it; they are run here. #}
{% macro lakehouse_after_pre_hooks(hooks, existing) %}
  {%- do run_hooks(hooks, inside_transaction=False) -%}
  {%- do run_hooks(hooks, inside_transaction=True) -%}
  {% do return(adapter.stored_relation(this) if hooks else existing) %}
{% endmacro %}
