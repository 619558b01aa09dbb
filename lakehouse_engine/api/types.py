"""Column types: Arrow's, by Spark's names."""

from __future__ import annotations

import pyarrow as pa

from lakehouse_engine.record.spark_types import BY_NAME, spark_name
from lakehouse_engine.record.types import check_differ

__all__ = ["check_differ", "spark_name", "stored_types"]


def stored_types() -> dict[str, pa.DataType]:
    """Spark's types without parameters, by all lower-case names, as tables store them."""
    return {name: kind.stored for name, kind in BY_NAME.items()}
