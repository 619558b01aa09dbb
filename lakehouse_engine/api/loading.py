"""How heavy modules are imported beside other threads."""

from lakehouse_engine.loading import PYSPARK, load_module

__all__ = ["PYSPARK", "load_module"]
