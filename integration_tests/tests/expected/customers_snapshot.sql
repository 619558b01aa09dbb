-- Versions over the extracts so far: a new one starts where a checked column differs from the extract before, or the customer was not
-- in that one. Of the times only their order is known here.
with states as (
    select *, struct(c_address, c_mktsegment, c_acctbal) as checked from feed_customer_extracts
),
marked as (
    select *,
        lag(batch) over w is null or lag(batch) over w <> batch - 1 or lag(checked) over w <> checked as starts
    from states window w as (partition by c_custkey order by batch)
),
numbered as (
    select *, cast(sum(cast(starts as int)) over (partition by c_custkey order by batch) as int) as version from marked
)
select
    c_custkey as customer_key, any_value(c_name) as name, any_value(c_address) as address, any_value(c_nationkey) as nation_key,
    any_value(c_phone) as phone, any_value(c_acctbal) as account_balance, any_value(c_mktsegment) as segment, version,
    max(batch) = (select max(batch) from feed_customer_extracts) as open
from numbered group by c_custkey, version
