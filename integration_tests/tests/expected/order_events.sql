select * from feed_orders
