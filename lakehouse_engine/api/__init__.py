"""Everything that the dbt adapter may use of the engine; the command line shares some of it.

`from lakehouse_engine import api` loads nothing: `api.tables` is imported on first use. `errors`, `names` and `options` load neither Arrow
nor Spark and may be imported as modules; importing the others would delay dbt's start. Only `frames` and `statements` load PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_engine.loading import modules_of

if TYPE_CHECKING:
    from lakehouse_engine.api import (
        clauses,
        describe,
        errors,
        frames,
        health,
        loading,
        names,
        options,
        sql,
        statements,
        tables,
        types,
        warehouse,
        work,
    )
else:
    __getattr__ = modules_of(__name__)

__all__ = [
    "clauses",
    "describe",
    "errors",
    "frames",
    "health",
    "loading",
    "names",
    "options",
    "sql",
    "statements",
    "tables",
    "types",
    "warehouse",
    "work",
]
