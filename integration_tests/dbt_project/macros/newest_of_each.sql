{# The newest change of each key, unless that one is its deletion: what a full refresh starts from. #}
{% macro newest_of_each(changes, keys) %}
select * except (age) from (
    select *, row_number() over (partition by {{ keys | join(', ') }} order by changed_at desc, loaded_at desc) as age
    from {{ changes }}
) as aged
where age = 1 and op <> 'D'
{% endmacro %}
