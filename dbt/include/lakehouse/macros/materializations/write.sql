{#
  What every materialization of a table does around its one write.
  `lakehouse_main` records a response as the result named main: there is no SQL statement to take it from.
#}

{% macro lakehouse_main(sql, response) %}
  {%- if execute -%}
    {{ log('Writing runtime sql for node "{}"'.format(model['unique_id'])) }}
    {{ write(adapter.contract_text(model) ~ sql if model['config']['materialized'] in ('table', 'incremental', 'external') else sql) }}
    {%- do store_result('main', response=response) -%}
  {%- endif -%}
{% endmacro %}

{#
  The SELECT that a model's rows come from: its own SQL, or the session view that its Python script left them in.
  Runs the sql_header first; with an enforced contract, checks the columns and puts them in the contract's order.
#}
{% macro lakehouse_select(language) %}
  {%- if language == 'python' -%}
    {{ return('select * from ' ~ adapter.quote(adapter.python_view(model))) }}
  {%- endif -%}
  {%- set header = config.get('sql_header') -%}
  {%- if header -%}
    {%- do adapter.execute(header) -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(compiled_code) -%}
    {{ return(get_select_subquery(compiled_code)) }}
  {%- endif -%}
  {{ return(compiled_code) }}
{% endmacro %}

{% macro lakehouse_persist_docs(relation, model) %}
  {%- set relation_docs = config.persist_relation_docs() -%}
  {%- set column_docs = config.persist_column_docs() -%}
  {%- if relation_docs or column_docs -%}
    {%- do persist_docs(relation, model) -%}
  {%- endif -%}
{% endmacro %}
