"""Groups of statements of a Spark session. Loads everything that runs a statement, including its writes."""

from lakehouse_engine.spark.completing import completed
from lakehouse_engine.statements.reading import Reading

__all__ = ["Reading", "completed"]
