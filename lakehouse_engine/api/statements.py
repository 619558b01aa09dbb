"""Statements of a Spark session that belong together; with them is loaded what carries any statement out, its writes too."""

from lakehouse_engine.spark.completing import completed
from lakehouse_engine.statements.reading import Reading

__all__ = ["Reading", "completed"]
