{% macro lakehouse__get_columns_in_relation(relation) %}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{% endmacro %}

{% macro lakehouse__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if add_columns -%}
    {%- call statement() -%}
      alter table {{ relation }} add columns (
        {%- for column in add_columns %} {{ column.quoted }} {{ column.data_type }}{{ ',' if not loop.last }} {%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement() -%}
      alter table {{ relation }} drop columns ({{ remove_columns | map(attribute='quoted') | join(', ') }})
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}
