"""Rules by which the rows of a merge-on-read table are merged: one value, from the table's configuration, that tasks can carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.format.log.blocks import LogBlock
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import KeyGenerator, key_generator_of, root_columns
from lakehouse_engine.record.merging.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.merging.mergers import EventTime, RecordMerger
from lakehouse_engine.record.merging.ordering_fields import NO_ORDERING, OrderingFields
from lakehouse_engine.record.merging.payloads import made_by_1x, payload_of

LATEST = "latest"
"""`MergeRules.settled` if ordering values do not count: it holds for any row of any writer."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """How rows merge. `key_generator` is None for tables whose rows carry their key (`_hoodie_record_key`); `marks` identifies deletions.

    With `as_stored`, records of logs are merged with each other as with base rows, in log order (tables made by Hudi 1.x); without it the
    higher ordering value stays, and rows are taken whole except in a partial update (0.15). With `weighs_deletions`, a logged deletion with
    an ordering value yields to a base row with a higher one (1.x, merging by event time). With `partial`, some rows of the logs have only
    some of the columns.
    """

    merger: RecordMerger
    ordering: OrderingFields
    key_generator: KeyGenerator | None = None
    marks: DeleteMarks = HUDI_MARK
    as_stored: bool = False
    weighs_deletions: bool = False
    partial: bool = False

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> MergeRules:
        """Rules of a table; `schema` has its user columns. An ordering field that is not one of them counts as equal in all rows, as in
        Hudi.

        Raises `UnsupportedTableError` for an unknown payload class or key generator.
        """
        payload, as_stored = payload_of(config), made_by_1x(config)
        counts = payload.merger.compares_ordering or not as_stored
        ordering = payload.ordering(config, schema) if counts else NO_ORDERING
        return cls(
            payload.merger,
            ordering,
            None if config.populates_meta_fields else key_generator_of(config),
            payload.delete_marks(config.properties),
            as_stored,
            payload.weighs_deletions and len(ordering) > 0,
        )

    @property
    def whole_rows(self) -> bool:
        """True if the result is always a row as stored or logged."""
        return self.merger.whole_rows and not self.partial

    @property
    def mixes_logs(self) -> bool:
        """True if a record of logs is combined with the one before it."""
        return self.partial or self.merger.losers_matter or (self.as_stored and not self.merger.whole_rows)

    def met_by(self, blocks: Iterable[LogBlock]) -> MergeRules:
        """Rules for the blocks of one slice."""
        return replace(self, partial=True) if any(block.is_partial for block in blocks) else self

    def settled(self, schema: pa.Schema) -> str | None:
        """Rule, as text, by which a logged row that replaces its base row does so whatever is logged later; None if there is none.

        Equal texts mean that the same rows are replaced. `schema` has the table's user columns.
        """
        if not self.merger.compares_ordering:
            return LATEST if self.whole_rows else None
        if self.partial or not (isinstance(self.merger, EventTime) and self.merger.equals_win):
            return None
        fields = [f"{'.'.join(path)} {kind}" for path, kind in zip(self.ordering.paths, self.ordering.types(schema), strict=True)]
        return ", ".join(["highest place in a binary log" if self.ordering.binlog else "highest", *fields])

    def columns(self, schema: pa.Schema, *, base: bool, keys: bool = True) -> list[str]:
        """Columns that a merge reads from a base file or from logs; key columns only with `keys`. `schema` has the table's user columns."""
        names = self._key_columns(schema) if keys else []
        if not base or self.merger.compares_ordering:
            names += self.ordering.roots
        if not base:
            names += self.marks.columns(schema.names)
        return list(dict.fromkeys(names))

    def decisive(self, schema: pa.Schema) -> list[str]:
        """Columns without which a row cannot be merged: its key and ordering fields."""
        return list(dict.fromkeys([*self._key_columns(schema), *self.ordering.roots]))

    def _key_columns(self, schema: pa.Schema) -> list[str]:
        return [RECORD_KEY] if self.key_generator is None else root_columns(self.key_generator.record_key_fields, schema.names)

    def record_keys(self, table: pa.Table) -> pa.Array:
        """Key of every row."""
        if self.key_generator is not None:
            return self.key_generator.record_keys(table)
        return table.column(RECORD_KEY).combine_chunks()

    def deletions(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """True for the rows of logs that are deletions."""
        return self.marks.of(table)
