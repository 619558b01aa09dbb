select
    c_custkey as customer_key,
    c_name as name,
    c_address as address,
    c_nationkey as nation_key,
    c_phone as phone,
    c_acctbal as account_balance,
    c_mktsegment as segment
from {{ source('tpch', 'customer') }}
