select
    order_date, priority, count(*) as orders, cast(sum(total_price) as decimal(18, 2)) as revenue, any_value(touched.loaded_at) as loaded_at,
    order_year, touched.quarter as order_quarter
from expected_orders
join (
    select year(o_orderdate) as year, quarter(o_orderdate) as quarter, max(loaded_at) as loaded_at from feed_orders group by 1, 2
) as touched on touched.year = order_year and touched.quarter = quarter(order_date)
group by order_date, priority, order_year, touched.quarter
