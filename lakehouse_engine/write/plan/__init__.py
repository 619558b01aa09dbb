"""What a write changes, and the tasks that do it; `cow` and `mor` in a name say for which kind of table."""
