"""Python models: the compiled script runs in this process with the thread's Spark session; what it returns is written like a SELECT."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.work.model_packages import check_packages
from dbt.adapters.lakehouse.work.model_rows import as_frame
from dbt.adapters.lakehouse.work.model_session import model_session

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge import Warehouse


def check_python_model(model: Mapping[str, Any]) -> None:
    """Before anything of the model runs. Raises `DbtRuntimeError` for packages that are not there."""
    packages = model["config"].get("packages") or ()
    check_packages(model["unique_id"], [packages] if isinstance(packages, str) else packages)


def run_python_model(script: str, warehouse: Warehouse, view: str, name: str) -> Any:
    """Run `script`'s `model(dbt, session)`; its rows as a DataFrame. Raises as `as_frame`, and what the model raises."""
    module = types.ModuleType(f"dbt_model_{view.strip('_')}")
    session = model_session(warehouse)
    exec(compile(script, f"<{name}>", "exec"), module.__dict__)
    module.spark = session  # type: ignore[attr-defined]
    dbt_object = module.dbtObj(lambda relation: warehouse.sql(f"select * from {relation}"))
    answer = module.model(dbt_object, session)
    return as_frame(answer, warehouse.spark, name)
