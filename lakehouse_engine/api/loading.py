"""Imports heavy modules beside other threads."""

from lakehouse_engine.loading import PYSPARK, load_module

__all__ = ["PYSPARK", "load_module"]
