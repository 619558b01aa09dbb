{# In the order that is asked for; a limit takes the first values of that order. #}
{% macro lakehouse__listagg(measure, delimiter_text, order_by_clause, limit_num) %}
  {%- if not limit_num -%}
    {{ return('listagg(' ~ measure ~ ', ' ~ delimiter_text ~ ')' ~ (' within group (' ~ order_by_clause ~ ')' if order_by_clause else '')) }}
  {%- endif -%}
  {%- if not order_by_clause -%}
    {{ return('array_join(slice(collect_list(' ~ measure ~ '), 1, ' ~ limit_num ~ '), ' ~ delimiter_text ~ ')') }}
  {%- endif -%}
  {%- set order = order_by_clause | trim -%}
  {%- if ' desc' in order | lower or ' nulls ' in order | lower or not (order | lower).startswith('order by ') -%}
    {{ exceptions.raise_compiler_error("listagg with limit_num takes an 'order by' of ascending columns, not: " ~ order) }}
  {%- endif -%}
  {%- set row = 'struct(struct(' ~ order[9:] ~ ') as place, ' ~ measure ~ ' as value)' -%}
  {{ return('array_join(slice(transform(array_sort(collect_list(' ~ row ~ ')), x -> x.value), 1, ' ~ limit_num ~ '), ' ~ delimiter_text ~ ')') }}
{% endmacro %}
