"""By what rules the rows of a merge-on-read table are merged: one value, from the table's configuration, that tasks can carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.model.keys import IS_DELETED, RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keygen import KeyGenerator, key_generator_of
from lakehouse_engine.record.mergers import EventTime, RecordMerger, merger_of

COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
"""Hudi 1.x's id of merging by commit time. Its writers leave it in version 6 tables too, and then ordering values count nowhere."""

_DELETE_FIELD = "hoodie.payload.delete.field"
_DELETE_MARKER = "hoodie.payload.delete.marker"


@dataclass(frozen=True, slots=True)
class MergeRules:
    """`key_generator` is None for tables whose rows carry their key (`_hoodie_record_key`).

    `delete_marker` is a column and the text that marks a row as a deletion in it (`DefaultHoodieRecordPayload` only).
    """

    merger: RecordMerger
    ordering: tuple[str, ...]
    key_generator: KeyGenerator | None = None
    delete_marker: tuple[str, str] | None = None

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> MergeRules:
        """`schema` has the table's user columns. An ordering field that is none of them counts as equal in all rows, as in Hudi.

        Raises `UnsupportedTableError` for a payload class or key generator that is not known, and for an ordering field in a struct.
        """
        merger = merger_of(config)
        field, marker = (config.properties.get(key, "") for key in (_DELETE_FIELD, _DELETE_MARKER))
        return cls(
            merger,
            () if _by_commit_time(config) else _ordering(config, schema),
            None if config.populates_meta_fields else key_generator_of(config),
            (field, marker) if field and marker and isinstance(merger, EventTime) else None,
        )

    def columns(self, schema: pa.Schema, *, base: bool) -> list[str]:
        """Columns that a merge reads, of a base file or of logs; `schema` has the table's user columns."""
        names = [RECORD_KEY] if self.key_generator is None else list(self.key_generator.record_key_fields)
        if not base or self.merger.compares_ordering:
            names += self.ordering
        if not base:
            names += [name for name in (IS_DELETED, *(self.delete_marker or ())[:1]) if name in schema.names]
        return list(dict.fromkeys(names))

    def record_keys(self, table: pa.Table) -> pa.Array:
        """The key of every row."""
        if self.key_generator is not None:
            return self.key_generator.record_keys(table)
        return table.column(RECORD_KEY).combine_chunks()

    def deletions(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows of logs are deletions."""
        marked = pa.chunked_array([np.zeros(table.num_rows, np.bool_)])
        if IS_DELETED in table.column_names and pat.is_boolean(table.schema.field(IS_DELETED).type):
            marked = pc.fill_null(table.column(IS_DELETED), False)
        if self.delete_marker is not None and self.delete_marker[0] in table.column_names:
            name, text = self.delete_marker
            marked = pc.or_(marked, pc.fill_null(pc.equal(table.column(name).cast(pa.string()), text), False))
        return marked


def _ordering(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    nested = [name for name in config.ordering_fields if "." in name and name not in schema.names]
    if nested:
        raise UnsupportedTableError(f"the ordering field {nested[0]!r} is inside a struct", table=config.name)
    known = {name.lower(): name for name in schema.names}
    return tuple(known[name.lower()] for name in config.ordering_fields if name.lower() in known)


def _by_commit_time(config: TableConfig) -> bool:
    mode = config.properties.get("hoodie.record.merge.mode", "").upper()
    return mode == "COMMIT_TIME_ORDERING" or config.properties.get("hoodie.record.merge.strategy.id") == COMMIT_TIME_STRATEGY
