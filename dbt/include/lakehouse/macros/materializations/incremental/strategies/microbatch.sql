{# A batch replaces the stored rows of its time range, whatever the partitions are. #}
{% macro lakehouse__get_incremental_microbatch_sql(arg_dict) %}
  {%- set within = lakehouse_batch_range() -%}
  {%- if not within -%}
    {{ exceptions.raise_compiler_error("microbatch needs the time range of its batch; run the model with dbt's batched execution") }}
  {%- endif -%}
  {{ return(lakehouse_increment(arg_dict, 'replace_where', within)) }}
{% endmacro %}

{#
  The condition of a batch's time range; none without one. The bounds are text, of which Spark makes a date where `event_time` is one: a
  timestamp would be compared with the dates' midnights in the session's time zone.
#}
{% macro lakehouse_batch_range() %}
  {%- set event_time = adapter.quote(config.get('event_time') | string) -%}
  {%- set bounds = [] -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do bounds.append(event_time ~ " >= '" ~ model.batch.event_time_start ~ "'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do bounds.append(event_time ~ " < '" ~ model.batch.event_time_end ~ "'") -%}
  {%- endif -%}
  {{ return((bounds | join(' and ')) or none) }}
{% endmacro %}
