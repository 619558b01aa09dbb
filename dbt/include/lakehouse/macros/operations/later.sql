{# Operations that Hudi has and this adapter does not have yet: they take any argument, answer by name, and change nothing. #}
{% macro lakehouse_later(operation, instead, unused) %}
  {%- if execute -%}
    {%- do exceptions.raise_compiler_error("run-operation " ~ operation ~ " is not available in this version: " ~ instead ~ ". Nothing was changed") -%}
  {%- endif -%}
{% endmacro %}

{% macro upgrade() %}
  {%- do lakehouse_later('upgrade', "tables are written in table version 6, which Hudi 0.14 to 1.2 reads; Hudi itself can upgrade one", kwargs) -%}
{% endmacro %}

{% macro downgrade() %}
  {%- do lakehouse_later('downgrade', "tables are written in table version 6; Hudi itself can downgrade one that it upgraded", kwargs) -%}
{% endmacro %}
