"""The only package that knows Spark: task runner, batches from DataFrames, scans as DataFrames. Public PySpark API only."""
