with newest as (
    select l_orderkey, l_linenumber, max(struct(changed_at, loaded_at)) as last from feed_lineitem group by l_orderkey, l_linenumber
)
select distinct
    l_orderkey as order_key, l_linenumber as line_number, l_partkey as part_key, l_suppkey as supplier_key, l_quantity as quantity,
    l_extendedprice as extended_price, l_discount as discount, l_tax as tax, l_returnflag as return_flag, l_linestatus as line_status,
    l_shipdate as ship_date, cast(date_format(l_shipdate, 'yyyy') as int) as ship_year, l_commitdate as commit_date,
    l_receiptdate as receipt_date, l_shipinstruct as ship_instructions, l_shipmode as ship_mode, l_comment as comment,
    op, changed_at, loaded_at
from feed_lineitem join newest using (l_orderkey, l_linenumber)
where struct(changed_at, loaded_at) = last and op in ('I', 'U')
