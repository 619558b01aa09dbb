{% macro lakehouse_incremental_strategy() %}
  {%- set strategy = config.get('incremental_strategy') -%}
  {%- if strategy and strategy != 'default' -%}
    {{ return(strategy) }}
  {%- endif -%}
  {{ return('merge' if config.get('unique_key') else 'append') }}
{% endmacro %}

{# What a strategy macro is called with: dbt's own keys, and the model. #}
{% macro lakehouse_strategy_arguments(target_relation, temp_relation) %}
  {{ return({
      'target_relation': target_relation,
      'temp_relation': temp_relation,
      'unique_key': config.get('unique_key'),
      'dest_columns': adapter.get_columns_in_relation(target_relation),
      'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none),
      'model': model,
  }) }}
{% endmacro %}

{% macro lakehouse_increment(arg_dict, writer_method, argument=none) %}
  {%- set select = 'select * from ' ~ arg_dict['temp_relation'] -%}
  {{ return(adapter.write_relation(arg_dict['target_relation'], select, writer_method, model, argument)) }}
{% endmacro %}
