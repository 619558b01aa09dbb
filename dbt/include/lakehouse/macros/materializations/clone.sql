{# `dbt clone` makes a view over the relation that it defers to: nothing is copied, and writes here never reach it. #}
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

  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set select = 'select * from ' ~ defer_relation -%}
  {%- do lakehouse_main(select, adapter.write_view(target_relation, select, existing_relation)) -%}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
