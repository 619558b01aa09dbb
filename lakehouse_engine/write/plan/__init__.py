"""Plans what a write changes, and the tasks; `cow` and `mor` in a name say for which table type."""
