{{ config(unique_key='customer_key') }}

with totals as (
    select customer_key, sum(orders) as orders, sum(spent) as spent, max(last_order) as last_order
    from {{ ref('customer_years') }}
    group by customer_key
)

select
    customers.*,
    nations.nation,
    nations.region,
    coalesce(totals.orders, 0) as orders,
    cast(coalesce(totals.spent, 0) as decimal(18, 2)) as spent,
    totals.last_order,
    named_struct('phone', customers.phone, 'address', customers.address) as contact
from {{ ref('stg_customers') }} as customers
join {{ ref('nation_regions') }} as nations on nations.nation_key = customers.nation_key
left join totals on totals.customer_key = customers.customer_key
