"""The only package that knows Spark: task runner, batches from DataFrames, scans as DataFrames. Public PySpark API only.

Importing this package alone does not load PySpark: `spark.input` is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_engine.loading import modules_of

if TYPE_CHECKING:
    from lakehouse_engine.spark import abilities, completing, frames, generated, input, schema, session
else:
    __getattr__ = modules_of(__name__)

__all__ = ["abilities", "completing", "frames", "generated", "input", "schema", "session"]
