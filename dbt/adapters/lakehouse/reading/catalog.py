"""Content of `dbt docs generate`: columns and statistics of every relation, from the warehouse directory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

if TYPE_CHECKING:
    import agate

BASE_COLUMNS = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
)
STATISTICS: dict[str, tuple[str, str]] = {
    "rows": ("Rows", "Rows of the newest snapshot; not shown while logs wait for a compaction"),
    "bytes": ("Bytes", "Size of the live base and log files"),
    "files": ("Files", "Live base and log files"),
    "last_commit": ("Last commit", "Instant of the last completed write"),
    "last_operation": ("Last operation", "What the last write was"),
    "table_type": ("Table type", "cow (copy-on-write) or mor (merge-on-read)"),
    "record_key": ("Record key", "Columns that identify a record"),
    "partition_by": ("Partitions", "Columns that choose a record's folder"),
}
STATISTIC_PARTS = ("label", "value", "description", "include")


@dataclass(frozen=True)
class CatalogEntry:
    """One relation: `columns` are (name, Spark type), `comments` as `persist_docs` stored them, `statistics` by id."""

    schema: str
    identifier: str
    kind: str
    columns: Sequence[tuple[str, str]]
    comments: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    database: str | None = None

    def column_comment(self, name: str) -> str | None:
        """Comment of a column, ignoring case: a model's YAML may spell it otherwise than its query."""
        kept: Mapping[str, str] = self.comments.get("columns") or {}
        if name in kept:
            return kept[name]
        return next((text for spelled, text in kept.items() if spelled.lower() == name.lower()), None)

    def rows(self) -> list[list[Any]]:
        """One row per column, in the order of `column_names()`."""
        relation = [self.database, self.schema, self.identifier, self.kind, self.comments.get("relation"), None]
        statistics = [part for name in STATISTICS for part in _statistic(name, self.statistics)]
        return [
            [*relation, name, position, kind, self.column_comment(name), *statistics]
            for position, (name, kind) in enumerate(self.columns, start=1)
        ]

    def as_catalog_table(self) -> CatalogTable:
        columns = {
            name: ColumnMetadata(type=kind, index=position, name=name, comment=self.column_comment(name))
            for position, (name, kind) in enumerate(self.columns, start=1)
        }
        statistics = {}
        for name in STATISTICS:
            label, value, description, include = _statistic(name, self.statistics)
            if include:
                statistics[name] = StatsItem(id=name, label=label, value=value, description=description, include=include)
        comment = self.comments.get("relation")
        metadata = TableMetadata(type=self.kind, schema=self.schema, name=self.identifier, comment=comment, database=self.database)
        statistics["has_stats"] = StatsItem(
            id="has_stats", label="Has Stats?", value=bool(self.statistics), include=False, description="Whether statistics are known"
        )
        return CatalogTable(metadata=metadata, columns=columns, stats=statistics)


def column_names() -> list[str]:
    """Columns of dbt's catalog, in order."""
    return [*BASE_COLUMNS, *(f"stats:{name}:{part}" for name in STATISTICS for part in STATISTIC_PARTS)]


def catalog_table(entries: Iterable[CatalogEntry]) -> agate.Table:
    """The entries as the table from which dbt reads a catalog."""
    import agate

    text, number, flag = agate.Text(cast_nulls=False), agate.Number(), agate.Boolean()
    kinds = {"column_index": number, **{f"stats:{name}:include": flag for name in STATISTICS}}
    header = column_names()
    rows = [[_cell(value) for value in row] for entry in entries for row in entry.rows()]
    return agate.Table(rows, header, [kinds.get(name, text) for name in header])


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int)) else str(value)


def _statistic(name: str, values: Mapping[str, Any]) -> list[Any]:
    label, description = STATISTICS[name]
    value = values.get(name)
    return [label, value, description, value is not None and value != ""]
