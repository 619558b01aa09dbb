{# The rows that arrived after those that the model has seen. #}
{% macro only_new(column='loaded_at') %}
{{ column }} > (select max({{ column }}) from {{ this }})
{% endmacro %}
