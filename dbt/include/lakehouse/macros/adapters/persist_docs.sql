{# Descriptions are kept beside the relation in the warehouse directory, for documentation, by the names that its columns have there. #}
{% macro lakehouse__persist_docs(relation, model, for_relation, for_columns) %}
  {%- set comment = model.description if for_relation and config.persist_relation_docs() else none -%}
  {%- set columns = {} -%}
  {%- if for_columns and config.persist_column_docs() and model.columns -%}
    {%- set existing = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set spelled = {} -%}
    {%- for name in existing -%}
      {%- do spelled.update({name | lower: name}) -%}
    {%- endfor -%}
    {%- for name, column in validate_doc_columns(relation, model.columns, existing).items() -%}
      {%- do columns.update({spelled[name | lower]: column['description']}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do adapter.set_comments(relation, comment, columns) -%}
{% endmacro %}
