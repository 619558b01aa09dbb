{# Descriptions are kept beside the relation in the warehouse directory, for documentation. #}
{% macro lakehouse__persist_docs(relation, model, for_relation, for_columns) %}
  {%- set comment = model.description if for_relation and config.persist_relation_docs() else none -%}
  {%- set columns = {} -%}
  {%- if for_columns and config.persist_column_docs() and model.columns -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- for name, column in validate_doc_columns(relation, model.columns, existing).items() -%}
      {%- do columns.update({name: column['description']}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do adapter.set_comments(relation, comment, columns) -%}
{% endmacro %}
