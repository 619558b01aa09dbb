"""Soft deletes: a deleted row stays stored with its ordering value and deletion time, and reads leave it out.

An older event of its key then loses against it, as against any row. Other readers see such rows as ordinary ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import OptionError, SchemaIncompatibleError
from lakehouse_engine.model.keys import DELETED_AT
from lakehouse_engine.model.table_config import DELETES_KEY, TableConfig
from lakehouse_engine.record.merging.deletions import DeleteMarks
from lakehouse_engine.record.merging.payloads import Payload

_FIELD = pa.field(DELETED_AT, pa.timestamp("us", tz="UTC"))


@dataclass(frozen=True, slots=True)
class SoftDeletes:
    """Keeps rows that `marks` call deletions, as deleted at `now`."""

    marks: DeleteMarks
    now: datetime = field(compare=False)

    def applied(self, rows: pa.Table) -> pa.Table:
        """The rows, with the deletion time in marked ones and the mark removed: Hudi would delete them for good."""
        marked = self.marks.of(rows)
        if not marked.any():
            return rows
        mask = pa.array(marked)
        for name in self.marks.columns(rows.column_names):
            at = rows.column_names.index(name)
            kept = pc.if_else(mask, pa.scalar(None, rows.schema.field(name).type), rows.column(name))
            rows = rows.set_column(at, rows.schema.field(name), kept)
        at, given = rows.column_names.index(DELETED_AT), rows.column(DELETED_AT)
        times = pc.if_else(pc.and_(mask, given.is_null()), pa.scalar(self.now, _FIELD.type), given)
        return rows.set_column(at, rows.schema.field(DELETED_AT), times)


def with_deleted_at(schema: pa.Schema) -> pa.Schema:
    """The schema with the deletion time. Raises `SchemaIncompatibleError` for another column of that name."""
    found = next((one for one in schema if one.name.lower() == DELETED_AT), None)
    if found is None:
        return schema.append(_FIELD)
    if found.name != DELETED_AT or not ((pa.types.is_timestamp(found.type) and found.type.tz) or pa.types.is_null(found.type)):
        message = f"the column {found.name!r} of type {found.type} has the name under which soft deletes keep their time; rename it"
        raise SchemaIncompatibleError(message, column=found.name)
    return schema


def hidden_column(config: TableConfig, schema: pa.Schema) -> str | None:
    """The hidden column by which reads of a table with this schema leave rows out; None if it has none."""
    return DELETED_AT if config.deletes_softly and DELETED_AT in schema.names else None


def shown_schema(config: TableConfig, schema: pa.Schema) -> pa.Schema:
    """Columns that reads show."""
    hidden = hidden_column(config, schema)
    return schema if hidden is None else pa.schema([one for one in schema if one.name != hidden])


def not_deleted() -> pc.Expression:
    """True for rows that are not softly deleted."""
    return pc.field(DELETED_AT).is_null()


def check_soft_deletes(config: TableConfig, payload: Payload) -> None:
    """Raise `OptionError` if a table cannot delete softly: it needs keys, and ordering values of which the greater wins unchanged."""
    why = "a deleted row is kept so that older events lose against it"
    for what, there in (("a record key", config.record_key_fields), ("an ordering field", config.ordering_fields)):
        if not there:
            raise OptionError(f"{DELETES_KEY}=soft needs {what}: {why}", table=config.name)
    if not (payload.merger.whole_rows and payload.merger.compares_ordering):
        raise OptionError(
            f"{DELETES_KEY}=soft needs a payload class that keeps the row of the greater ordering value as it is, such as"
            f" DefaultHoodieRecordPayload; {payload.name} does not (for DMS, let hoodie.payload.delete.field be Op, and"
            " hoodie.payload.delete.marker D)",
            table=config.name,
        )
