with changes as (
    select *, row_number() over (partition by l_orderkey, l_linenumber order by changed_at desc, loaded_at desc) as age
    from feed_lineitem
)
select
    l_orderkey as order_key, l_linenumber as line_number, l_partkey as part_key, l_suppkey as supplier_key, l_quantity as quantity,
    l_extendedprice as extended_price, l_discount as discount, l_tax as tax, l_returnflag as return_flag, l_linestatus as line_status,
    l_shipdate as ship_date, cast(date_format(l_shipdate, 'yyyy') as int) as ship_year, l_commitdate as commit_date,
    l_receiptdate as receipt_date, l_shipinstruct as ship_instructions, l_shipmode as ship_mode, l_comment as comment,
    op, changed_at, loaded_at
from changes
where age = 1 and op in ('I', 'U')
