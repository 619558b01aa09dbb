"""The adapter's only door to the engine: builds its objects, calls them, and maps errors and results to dbt's.

A profile and parsing need few engine modules, and only those are imported here. The rest, PySpark included, loads on first use, so that dbt
can read the project while Spark starts.
"""
