"""Table properties that the adapter compares: keys, layout, version."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.names import same_names

if TYPE_CHECKING:
    from lakehouse_engine.api.warehouse import Lakehouse, RepairReport


@dataclass(frozen=True)
class TableShape:
    """Keys and layout of a table; a model must agree with them to keep its table."""

    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    hive_style: bool
    table_type: str = "cow"
    deletes_softly: bool = False
    version: int | None = None
    """Table version; None accepts any."""

    def fits(self, wanted: TableShape) -> bool:
        """True if a table of this shape can store what the other shape asks for."""
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
    """A table of which nothing has been read yet."""

    lakehouse: Lakehouse
    name: str

    def repair(self, **given: bool) -> RepairReport:
        return self.lakehouse.repair_table(self.name, **given)


@dataclass(frozen=True)
class HeldTables:
    """Tables (`names`: `schema.table` in lower case, possibly more later) that are looked up below `folder` of the warehouse."""

    folder: str
    names: Container[str]
