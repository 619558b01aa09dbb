"""Runs Python models in this process with the thread's Spark session; the result is written like a SELECT."""

from __future__ import annotations

import traceback
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.work.model_packages import check_packages
from dbt.adapters.lakehouse.work.model_rows import as_frame
from dbt.adapters.lakehouse.work.model_session import model_session

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_TOLD = ("pyspark", "py4j", "lakehouse_engine", "dbt", "dbt_common")
"""Packages whose errors are handled elsewhere."""


def check_python_model(model: Mapping[str, Any]) -> None:
    """Check the model's packages before anything runs. Raises `DbtRuntimeError`."""
    packages = model["config"].get("packages") or ()
    check_packages(model["unique_id"], [packages] if isinstance(packages, str) else packages)


def run_python_model(script: str, warehouse: Warehouse, view: str, name: str) -> Any:
    """Run `model(dbt, session)` of `script`; returns its rows as a DataFrame.

    Raises as `as_frame`. Errors of Spark, the engine or dbt in the model pass through; other errors become `DbtRuntimeError` with the line.
    """
    module = types.ModuleType(f"dbt_model_{view.strip('_')}")
    session = model_session(warehouse)
    code = compile(script, f"<{name}>", "exec")
    try:
        exec(code, module.__dict__)
        module.spark = session  # type: ignore[attr-defined]
        dbt_object = module.dbtObj(lambda relation: warehouse.sql(f"select * from {relation}"))
        answer = module.model(dbt_object, session)
    except Exception as error:
        if type(error).__module__.split(".")[0] in _TOLD:
            raise
        raise DbtRuntimeError(f"{name}: {type(error).__name__}{_line(error, code.co_filename)}: {error}") from error
    return as_frame(answer, warehouse.session, name)


def _line(error: Exception, file: str) -> str:
    """Line of the model at which an error happened; the script begins with the model's file."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return f" in line {lines[-1]}" if lines else ""
