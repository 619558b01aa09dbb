{# A relation with `deletes: soft`, and its deleted rows too: `_lakehouse_deleted_at` says when each was deleted, and is null in live ones. #}
{% macro with_deleted(relation) %}
  {{- return(adapter.relation_with_deleted(relation)) -}}
{% endmacro %}
