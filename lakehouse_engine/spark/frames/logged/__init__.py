"""What logs do to snapshots that Spark reads: the rows that they replace and add, and files that the driver makes of merged rows."""
