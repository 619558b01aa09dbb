{{ config(partition_by='region') }}

select
    nations.nation,
    date_format(orders.order_date, 'yyyy-MM') as month,
    count(distinct orders.order_key) as orders,
    count(*) as lines,
    cast(sum(lineitems.extended_price * (1 - lineitems.discount)) as decimal(20, 4)) as revenue,
    nations.region
from {{ ref('orders') }} as orders
join {{ ref('lineitems') }} as lineitems on lineitems.order_key = orders.order_key
join {{ ref('stg_customers') }} as customers on customers.customer_key = orders.customer_key
join {{ ref('nation_regions') }} as nations on nations.nation_key = customers.nation_key
group by nations.region, nations.nation, date_format(orders.order_date, 'yyyy-MM')
