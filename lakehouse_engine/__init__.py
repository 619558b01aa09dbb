"""Apache Hudi tables from Python: written and read with pyarrow and Spark, without a Hudi jar."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakehouse_engine.errors import LakehouseError
    from lakehouse_engine.lakehouse import Lakehouse
    from lakehouse_engine.model.instant import Action, Instant, State
    from lakehouse_engine.model.table_config import TableConfig, TableType
    from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
    from lakehouse_engine.table import HoodieTable
    from lakehouse_engine.table_services import repair_table, upgrade_table
    from lakehouse_engine.timeline.timeline import Timeline

__all__ = [
    "Action",
    "HoodieTable",
    "Instant",
    "Lakehouse",
    "LakehouseError",
    "State",
    "TableConfig",
    "TableType",
    "Timeline",
    "WriteOperationType",
    "WriteResult",
    "repair_table",
    "upgrade_table",
]

_HOMES = {
    "Action": "model.instant",
    "HoodieTable": "table",
    "Instant": "model.instant",
    "Lakehouse": "lakehouse",
    "LakehouseError": "errors",
    "State": "model.instant",
    "TableConfig": "model.table_config",
    "TableType": "model.table_config",
    "Timeline": "timeline.timeline",
    "WriteOperationType": "model.write_stats",
    "WriteResult": "model.write_stats",
    "repair_table": "table_services",
    "upgrade_table": "table_services",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for (PEP 562): the command line must start without importing Spark."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
