select
    o_orderkey as order_key,
    o_custkey as customer_key,
    o_orderstatus as status,
    o_totalprice as total_price,
    o_orderdate as order_date,
    year(o_orderdate) as order_year,
    o_orderpriority as priority,
    o_clerk as clerk,
    o_shippriority as ship_priority,
    o_comment as comment,
    op,
    changed_at,
    loaded_at
from {{ ref('stg_order_events') }}
