{#
  dbt-spark's lose what is below a second, count an hour for each that was begun, and two months from the last day of one month to that of
  the next.
  Days and longer go by the calendar of the session, hours and shorter by the time that passes.
#}
{% macro lakehouse__dateadd(datepart, interval, from_date_or_timestamp) %}
  {%- set calendar = {'day': ('day', 1), 'week': ('day', 7), 'month': ('month', 1), 'quarter': ('month', 3), 'year': ('month', 12)} -%}
  {%- set part = datepart | lower -%}
  {%- if part in calendar -%}
    timestampadd({{ calendar[part][0] }}, cast(({{ interval }}) * {{ calendar[part][1] }} as int), to_timestamp({{ from_date_or_timestamp }}))
  {%- elif part in lakehouse__microseconds() -%}
    timestamp_micros(unix_micros(to_timestamp({{ from_date_or_timestamp }})) + cast(({{ interval }}) * {{ lakehouse__microseconds()[part] }}L as bigint))
  {%- else -%}
    {{ exceptions.raise_compiler_error("dateadd has no date part '" ~ datepart ~ "'; it has " ~ lakehouse__date_parts()) }}
  {%- endif -%}
{% endmacro %}


{# How many borders of the part lie between the two; weeks begin on Sundays. #}
{% macro lakehouse__datediff(first_date, second_date, datepart) %}
  {%- set part = datepart | lower -%}
  {%- set first = 'date(' ~ first_date ~ ')' -%}
  {%- set second = 'date(' ~ second_date ~ ')' -%}
  {%- if part == 'day' -%}
    datediff({{ second }}, {{ first }})
  {%- elif part == 'week' -%}
    (floor(datediff({{ second }}, date'1970-01-04') / 7) - floor(datediff({{ first }}, date'1970-01-04') / 7))
  {%- elif part == 'month' -%}
    ((year({{ second }}) - year({{ first }})) * 12 + month({{ second }}) - month({{ first }}))
  {%- elif part == 'quarter' -%}
    ((year({{ second }}) - year({{ first }})) * 4 + quarter({{ second }}) - quarter({{ first }}))
  {%- elif part == 'year' -%}
    (year({{ second }}) - year({{ first }}))
  {%- elif part in lakehouse__microseconds() -%}
    {%- set begun = "unix_micros(date_trunc('" ~ part ~ "', to_timestamp(" -%}
    (({{ begun }}{{ second_date }}))) - {{ begun }}{{ first_date }})))) div {{ lakehouse__microseconds()[part] }}L)
  {%- else -%}
    {{ exceptions.raise_compiler_error("datediff has no date part '" ~ datepart ~ "'; it has " ~ lakehouse__date_parts()) }}
  {%- endif -%}
{% endmacro %}


{% macro lakehouse__microseconds() %}
  {{ return({'hour': 3600000000, 'minute': 60000000, 'second': 1000000, 'millisecond': 1000, 'microsecond': 1}) }}
{% endmacro %}


{% macro lakehouse__date_parts() %}
  {{ return('day, week, month, quarter, year, ' ~ lakehouse__microseconds() | join(', ')) }}
{% endmacro %}
