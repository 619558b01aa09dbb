"""By what rules the rows of a merge-on-read table are merged: one value, from the table's configuration, that tasks can carry."""

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
"""The rule of `MergeRules.settled` where ordering values do not count: it holds of any row, whoever logged it."""


@dataclass(frozen=True, slots=True)
class MergeRules:
    """`key_generator` is None for tables whose rows carry their key (`_hoodie_record_key`); `marks` says which rows are deletions.

    With `as_stored` records of logs meet each other as they meet base rows, in the order of the log (Hudi 1.x, in the tables that it
    made); without it the higher ordering value stays, and rows are taken whole but under a partial update (0.15). With
    `weighs_deletions` a logged deletion with an ordering value yields to a base row of a higher one (1.x, merging by event time). With
    `partial` some rows of the logs have some of the columns only.
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
        """`schema` has the table's user columns. An ordering field that is none of them counts as equal in all rows, as in Hudi.

        Raises `UnsupportedTableError` for a payload class or key generator that is not known.
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
        """Whether the result is always a row as it is stored or logged."""
        return self.merger.whole_rows and not self.partial

    @property
    def mixes_logs(self) -> bool:
        """Whether a record of logs is made one with the one before it."""
        return self.partial or self.merger.losers_matter or (self.as_stored and not self.merger.whole_rows)

    def met_by(self, blocks: Iterable[LogBlock]) -> MergeRules:
        """The rules for the blocks of one slice."""
        return replace(self, partial=True) if any(block.is_partial for block in blocks) else self

    def settled(self, schema: pa.Schema) -> str | None:
        """The rule by which a row of the logs that takes the place of its base row does so whatever is logged afterwards, as text: by any
        two equal ones the same rows do. None where there is no such rule. `schema` has the table's user columns.
        """
        if not self.merger.compares_ordering:
            return LATEST if self.whole_rows else None
        if self.partial or not (isinstance(self.merger, EventTime) and self.merger.equals_win):
            return None
        fields = [f"{'.'.join(path)} {kind}" for path, kind in zip(self.ordering.paths, self.ordering.types(schema), strict=True)]
        return ", ".join(["highest place in a binary log" if self.ordering.binlog else "highest", *fields])

    def columns(self, schema: pa.Schema, *, base: bool, keys: bool = True) -> list[str]:
        """Columns that a merge reads, of a base file or of logs, those of keys only if it goes by `keys`; `schema` has the table's user
        columns.
        """
        names = self._key_columns(schema) if keys else []
        if not base or self.merger.compares_ordering:
            names += self.ordering.roots
        if not base:
            names += self.marks.columns(schema.names)
        return list(dict.fromkeys(names))

    def decisive(self, schema: pa.Schema) -> list[str]:
        """Columns without which a row cannot be merged: those of its key, and those that it is ordered by."""
        return list(dict.fromkeys([*self._key_columns(schema), *self.ordering.roots]))

    def _key_columns(self, schema: pa.Schema) -> list[str]:
        return [RECORD_KEY] if self.key_generator is None else root_columns(self.key_generator.record_key_fields, schema.names)

    def record_keys(self, table: pa.Table) -> pa.Array:
        """The key of every row."""
        if self.key_generator is not None:
            return self.key_generator.record_keys(table)
        return table.column(RECORD_KEY).combine_chunks()

    def deletions(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows of logs are deletions."""
        return self.marks.of(table)
