{% macro lakehouse__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}

{% macro lakehouse__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} add columns (
        {%- for column in add_columns %} {{ column.quoted }} {{ column.data_type }}{{ ',' if not loop.last }} {%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement() -%}
      alter table {{ relation.render() }} drop columns ({{ remove_columns | map(attribute='quoted') | join(', ') }})
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}

{% macro lakehouse__alter_column_type(relation, column_name, new_column_type) %}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ api.Column.create(column_name, new_column_type).data_type }}
  {%- endcall -%}
{% endmacro %}

{% macro lakehouse__alter_relation_comment(relation, relation_comment) %}
  {%- do adapter.set_comments(relation, relation_comment, {}) -%}
{% endmacro %}

{% macro lakehouse__alter_column_comment(relation, column_dict) %}
  {%- set columns = {} -%}
  {%- for name, column in column_dict.items() -%}
    {%- do columns.update({name: column['description']}) -%}
  {%- endfor -%}
  {%- do adapter.set_comments(relation, none, columns) -%}
{% endmacro %}
