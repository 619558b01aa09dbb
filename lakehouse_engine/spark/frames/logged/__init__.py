"""What logs do to snapshots that Spark reads: rows that they replace and add, and files of rows that the driver made of them."""
