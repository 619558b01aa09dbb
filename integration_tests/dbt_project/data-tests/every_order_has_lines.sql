select order_key from {{ ref('orders') }}
except
select order_key from {{ ref('lineitems') }}
