"""Keys and partition paths: how they are made of rows, and what they tell of them."""
