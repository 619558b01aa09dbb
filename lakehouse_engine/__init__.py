"""Apache Hudi tables from Python: written and read with pyarrow and Spark, without a Hudi jar."""
