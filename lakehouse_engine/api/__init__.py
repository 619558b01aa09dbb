"""What the dbt adapter and the command line may use of the engine.

`from lakehouse_engine import api` loads none of it: `api.tables` is imported when it is first used. `errors`, `names` and `options` load
neither Arrow nor Spark, and may be imported as modules; dbt would wait for the others before it can say what to start. PySpark comes with
`frames` and `statements` only.
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
