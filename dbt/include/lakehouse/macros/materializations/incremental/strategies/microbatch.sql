{#
  A batch replaces the stored rows of its time range, whatever the partitions are. The bounds are text, of which Spark makes a date where
  `event_time` is one: a timestamp would be compared with the dates' midnights in the session's time zone.
#}
{% macro lakehouse__get_incremental_microbatch_sql(arg_dict) %}
  {%- set event_time = adapter.quote(config.get('event_time')) -%}
  {%- set bounds = [] -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do bounds.append(event_time ~ " >= '" ~ model.batch.event_time_start ~ "'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do bounds.append(event_time ~ " < '" ~ model.batch.event_time_end ~ "'") -%}
  {%- endif -%}
  {%- if not bounds -%}
    {{ exceptions.raise_compiler_error("microbatch needs the time range of its batch; run the model with dbt's batched execution") }}
  {%- endif -%}
  {{ return(lakehouse_increment(arg_dict, 'replace_where', bounds | join(' and '))) }}
{% endmacro %}
