"""Two dbt processes and an interactive session in one warehouse, with every strategy at once; see `make dbt-side-by-side`."""
