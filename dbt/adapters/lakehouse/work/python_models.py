"""Python models: the compiled script runs in this process with the thread's Spark session; what it returns is written like a SELECT."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge import Warehouse


def run_python_model(script: str, warehouse: Warehouse, view: str, name: str) -> Any:
    """Run `script`'s `model(dbt, session)`; its rows as a DataFrame.

    It may return a Spark, pandas or polars DataFrame, or a pyarrow Table. Raises `DbtRuntimeError` for anything else.
    """
    module = types.ModuleType(f"dbt_model_{view.strip('_')}")
    exec(compile(script, f"<{name}>", "exec"), module.__dict__)
    module.spark = warehouse.spark  # type: ignore[attr-defined]
    dbt_object = module.dbtObj(lambda relation: warehouse.sql(f"select * from {relation}"))
    answer = module.model(dbt_object, warehouse.spark)
    return _as_frame(answer, warehouse.spark, name)


def _as_frame(answer: Any, spark: Any, name: str) -> Any:
    """The answer as a DataFrame of `spark`; pandas-on-Spark makes its frames in the root session, whose views are not seen here."""
    from pyspark.sql import DataFrame

    # A frame of Spark Connect has an attribute of any name, so that its class is asked first.
    if not isinstance(answer, DataFrame) and hasattr(answer, "to_spark"):
        answer = answer.to_spark()
    if isinstance(answer, DataFrame):
        return answer if answer.sparkSession is spark else spark.createDataFrame(answer.toArrow())
    if hasattr(answer, "to_arrow"):
        answer = answer.to_arrow()
    if type(answer).__module__.split(".")[0] in ("pandas", "pyarrow"):
        return spark.createDataFrame(answer)
    raise DbtRuntimeError(f"{name}: a Python model returns a DataFrame (Spark, pandas, polars) or a pyarrow Table, not {type(answer)}")
