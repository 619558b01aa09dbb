"""Tables as DataFrames: plans over files that Spark reads itself, and over what it cannot read. Imported as `spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_engine.loading import modules_of

if TYPE_CHECKING:
    from lakehouse_engine.spark.frames import scan, statement_views
else:
    __getattr__ = modules_of(__name__)

__all__ = ["scan", "statement_views"]
