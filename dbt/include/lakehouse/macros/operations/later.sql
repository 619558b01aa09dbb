{# Operations that Hudi has and this adapter does not have yet: they take any argument, answer by name, and change nothing. #}
{% macro lakehouse_later(operation, instead, unused) %}
  {%- if execute -%}
    {%- do exceptions.raise_compiler_error("run-operation " ~ operation ~ " is not available in this version: " ~ instead ~ ". Nothing was changed") -%}
  {%- endif -%}
{% endmacro %}

{% macro cluster() %}
  {%- do lakehouse_later('cluster', "small files are filled by later writes (hoodie.parquet.small.file.limit), and a run with --full-refresh writes a model's files anew", kwargs) -%}
{% endmacro %}
