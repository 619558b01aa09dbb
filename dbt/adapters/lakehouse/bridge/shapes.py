"""What tables are like, or are seen like, in the adapter's words."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.names import same_names

if TYPE_CHECKING:
    from lakehouse_engine.api.warehouse import Lakehouse, RepairReport


@dataclass(frozen=True)
class TableShape:
    """How a table is keyed and laid out: what a model must agree with to keep its table."""

    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    hive_style: bool
    table_type: str = "cow"
    deletes_softly: bool = False
    version: int | None = None
    """The table version; None where any will do."""

    def fits(self, wanted: TableShape) -> bool:
        """Whether a table of this shape can hold what is wanted to have the other one."""
        return (
            self.table_type == wanted.table_type
            and wanted.version in (None, self.version)
            and self.deletes_softly == wanted.deletes_softly
            and same_names(self.record_key, wanted.record_key)
            and same_names(self.partition_by, wanted.partition_by)
            and same_names(self.ordering_fields, wanted.ordering_fields)
            and (self.hive_style == wanted.hive_style or not wanted.partition_by)
        )


@dataclass(frozen=True)
class Unopened:
    """A table that nothing was read of."""

    lakehouse: Lakehouse
    name: str

    def repair(self, **given: bool) -> RepairReport:
        return self.lakehouse.repair_table(self.name, **given)


@dataclass(frozen=True)
class HeldTables:
    """Tables (`names`: `schema.table` in lower case; more may come) that are looked for below `folder` of the warehouse."""

    folder: str
    names: Container[str]
