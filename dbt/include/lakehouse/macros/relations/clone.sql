{# A project that wants views of all that it clones overrides this one with a macro `can_clone_table` of its own. #}
{% macro lakehouse__can_clone_table() %}
  {{ return(True) }}
{% endmacro %}

{% macro lakehouse__create_or_replace_clone(this_relation, defer_relation) -%}
  create or replace table {{ this_relation.render() }} clone {{ defer_relation.render() }}
{%- endmacro %}
