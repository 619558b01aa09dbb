{# A batch replaces the stored rows of its time range, whatever the partitions are. #}
{% macro lakehouse__get_incremental_microbatch_sql(arg_dict) %}
  {%- set within = lakehouse_batch_range(arg_dict['target_relation']) -%}
  {%- if not within -%}
    {{ exceptions.raise_compiler_error("microbatch needs the time range of its batch; run the model with dbt's batched execution") }}
  {%- endif -%}
  {{ return(lakehouse_increment(arg_dict, 'replace_where', within)) }}
{% endmacro %}

{# The condition of a batch's time range, on a stored table or (none) on the model's rows; none without a range. #}
{% macro lakehouse_batch_range(stored=none) %}
  {%- if model.batch -%}
    {{ return(adapter.batch_range(stored, config.get('event_time') | string, model.batch.event_time_start, model.batch.event_time_end)) }}
  {%- endif -%}
  {{ return(none) }}
{% endmacro %}
