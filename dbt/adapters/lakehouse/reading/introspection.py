"""What the warehouse holds: relations, columns, last writes. Only columns of views need Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.describe import kept_savepoints, statistics
from dbt.adapters.lakehouse.bridge.files import files_written
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.reading.catalog import CatalogEntry
from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.connections import LakehouseConnectionManager
    from dbt.adapters.lakehouse.relation import LakehouseRelation

Columns = list[tuple[str, str]]
_ABSENT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


@dataclass(frozen=True)
class Introspection:
    """Questions and changes that dbt asks for outside of a model's write."""

    warehouse: Warehouse
    connections: LakehouseConnectionManager

    def columns(self, relation: LakehouseRelation) -> Columns:
        """(name, Spark type) of a relation's columns; empty if it does not exist."""
        if relation.files is None and not relation.is_temporary and self.warehouse.kind(*relation.stored) == "table":
            return list(self.warehouse.look(*relation.stored).types.items())
        return self._analysed(relation)

    def _analysed(self, relation: LakehouseRelation) -> Columns:
        try:
            with self.connections.exception_handler(str(relation)):
                frame = self.connections.session().run(f"select * from {_reference(relation)} where false")
        except DbtDatabaseError as error:
            if any(text in error.msg for text in _ABSENT):
                return []
            raise
        return [(item.name, item.dataType.simpleString()) for item in frame.schema.fields]

    def drop(self, relation: LakehouseRelation) -> None:
        if relation.is_temporary:
            self.connections.session().drop_view(str(relation.identifier))
        elif relation.type == "function":
            self.warehouse.drop_function(*relation.stored)
        else:
            self.warehouse.drop(*relation.stored)

    def truncate(self, relation: LakehouseRelation) -> None:
        table = self.warehouse.table(*relation.stored)
        table.insert_overwrite_table(table.schema.empty_table())

    def rename(self, source: LakehouseRelation, target: LakehouseRelation) -> None:
        self.warehouse.rename(source.stored, target.stored)

    def last_write(self, relation: LakehouseRelation) -> datetime | None:
        """Time of a table's last write, or of the newest change to a source's files."""
        if (files := relation.files) is not None:
            return self.connections.session().work(lambda house: files_written(house.session, files))
        return api.health.last_write(self.warehouse.look(*relation.stored).state)

    def entry(self, relation: LakehouseRelation) -> CatalogEntry | None:
        """Documentation of a relation; None if it is not in the warehouse."""
        if relation.files is not None:
            return CatalogEntry(*relation.stored, "external", self.columns(relation))
        kind = self.warehouse.kind(*relation.stored)
        if kind is None:
            return None
        comment, columns = self.warehouse.comments(*relation.stored)
        facts = statistics(self.warehouse.look(*relation.stored)) if kind == "table" else {}
        comments = {"relation": comment, "columns": columns}
        told = self.warehouse.told_kind(*relation.stored) or kind
        return CatalogEntry(*relation.stored, told, self.columns(relation), comments, facts)


def keep_comments(warehouse: Warehouse, relation: LakehouseRelation, comment: str | None, columns: Mapping[str, str]) -> None:
    """Store descriptions beside the relation. An entry under another spelling of a column's name is replaced."""
    stored = warehouse.comments(*relation.stored)[1] if columns else {}
    given = {name.lower() for name in columns}
    spelled_otherwise = {name: "" for name in stored if name not in columns and name.lower() in given}
    warehouse.set_comments(*relation.stored, comment, {**spelled_otherwise, **columns})


def store_view(warehouse: Warehouse, relation: LakehouseRelation, sql: str, rows: Any) -> None:
    """Store a view of `sql` (whose rows are `rows`), replacing the current relation. A definition without columns changes nothing.

    Raises `DbtDatabaseError` for a table with savepoints, which would be lost, and as `Warehouse.check_view`.
    """
    warehouse.check_view(*relation.stored, rows.columns)  # Spark could not analyse it
    if warehouse.kind(*relation.stored) == "table":
        warehouse.vacate(*relation.stored, lambda: check_nothing_is_kept(warehouse, relation))
    warehouse.create_view(*relation.stored, sql)


def check_nothing_is_kept(warehouse: Warehouse, relation: LakehouseRelation) -> None:
    """Raise `DbtDatabaseError` if the table has savepoints made by users; those of protected runs do not count."""
    if kept := kept_savepoints(warehouse, *relation.stored):
        raise DbtDatabaseError(
            f"{relation.schema}.{relation.identifier} is a table, and would become a view: its savepoints would be lost with it: "
            f"{', '.join(kept)}; delete them first (dbt run-operation delete_savepoint)"
        )


def _reference(relation: LakehouseRelation) -> str:
    if relation.files is not None:
        return relation.files
    if relation.is_temporary:
        return quoted(str(relation.identifier))
    return ".".join(quoted(part) for part in (relation.database, *relation.stored) if part)
