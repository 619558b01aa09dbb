-- Joins of the mart must neither lose nor repeat a line of an order whose customer is known.
with expected as (
    select count(*) as lines
    from {{ ref('lineitems') }} as lineitems
    join {{ ref('orders') }} as orders on orders.order_key = lineitems.order_key
    where orders.customer_key in (select customer_key from {{ ref('stg_customers') }})
),
found as (select sum(lines) as lines from {{ ref('revenue_by_nation_month') }})
select * from expected, found where expected.lines <> found.lines
