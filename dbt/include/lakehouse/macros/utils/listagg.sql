{# In the order that is asked for; a limit takes the first values of that order. #}
{% macro lakehouse__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {%- if not limit_num -%}
    {{ return('listagg(' ~ measure ~ ', ' ~ delimiter_text ~ ')' ~ (' within group (' ~ order_by_clause ~ ')' if order_by_clause else '')) }}
  {%- endif -%}
  {%- if not order_by_clause -%}
    {{ return(lakehouse__listagg_of_some(measure, 'collect_list(' ~ measure ~ ')', delimiter_text, limit_num)) }}
  {%- endif -%}
  {%- set order = order_by_clause | trim -%}
  {%- if ' desc' in order | lower or ' nulls ' in order | lower or not (order | lower).startswith('order by ') -%}
    {{ exceptions.raise_compiler_error("listagg with limit_num takes an 'order by' of ascending columns, not: " ~ order) }}
  {%- endif -%}
  {%- set row = 'struct(struct(' ~ order[9:] ~ ') as place, ' ~ measure ~ ' as value)' -%}
  {{ return(lakehouse__listagg_of_some(measure, 'transform(array_sort(collect_list(' ~ row ~ ')), x -> x.value)', delimiter_text, limit_num)) }}
{% endmacro %}

{% macro lakehouse__listagg_of_some(measure, values, delimiter_text, limit_num) %}
  {#- As listagg itself does, of no values it makes null. -#}
  {{ return('case when count(' ~ measure ~ ') > 0 then array_join(slice(' ~ values ~ ', 1, ' ~ limit_num ~ '), ' ~ delimiter_text ~ ') end') }}
{%- endmacro %}
