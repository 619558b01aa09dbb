"""The only importer of the engine: builds its objects, calls them, maps its errors and results to dbt's.

What dbt needs to know a profile and to parse is imported here; the rest of the engine (and PySpark with it) is loaded when something of
it is first used: dbt waits for these imports before it can say what to start, and Spark starts meanwhile.
"""
