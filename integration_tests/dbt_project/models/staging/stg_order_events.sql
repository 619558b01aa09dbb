-- Everything that the feed says, also columns that it gets one day.
select * from {{ source('tpch', 'orders') }}
