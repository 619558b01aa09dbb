{#
  `dbt clone` makes a table of the files of the table that it defers to; the two share nothing from then on. Of what is no table, and where
  `can_clone_table` says no, it makes a view.
#}
{% materialization clone, adapter='lakehouse' %}
  {%- set relations = {'relations': []} -%}
  {%- if not defer_relation -%}
    {{ log("No relation found in state manifest for " ~ model.unique_id, info=True) }}
    {{ return(relations) }}
  {%- endif -%}

  {%- set existing_relation = load_cached_relation(this) -%}
  {%- if existing_relation and not flags.FULL_REFRESH -%}
    {{ log("Relation " ~ existing_relation ~ " already exists", info=True) }}
    {{ return(relations) }}
  {%- endif -%}
  {%- set deferred_relation = load_cached_relation(defer_relation) -%}
  {%- set mine = (this.database, this.schema, this.identifier) -%}
  {%- if deferred_relation and mine == (defer_relation.database, defer_relation.schema, defer_relation.identifier) -%}
    {{ log("Target relation and defer relation are the same, skipping clone for relation: " ~ this.render()) }}
    {{ return(relations) }}
  {%- endif -%}

  {%- if deferred_relation and deferred_relation.is_table and can_clone_table() -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- if existing_relation and not existing_relation.is_table -%}
      {%- do drop_relation_if_exists(existing_relation) -%}
    {%- endif -%}
    {%- call statement('main') -%}{{ create_or_replace_clone(target_relation, defer_relation) }}{%- endcall -%}
  {%- else -%}
    {%- set target_relation = this.incorporate(type='view') -%}
    {%- set select = 'select * from ' ~ defer_relation -%}
    {%- do lakehouse_main(select, adapter.write_view(target_relation, select, existing_relation)) -%}
  {%- endif -%}
  {% do lakehouse_persist_docs(target_relation, model) %}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
