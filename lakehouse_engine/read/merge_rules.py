"""By what rules the rows of a merge-on-read table are merged: one value, from the table's configuration, that tasks can carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.keygen import KeyGenerator, key_generator_of
from lakehouse_engine.record.mergers import RecordMerger
from lakehouse_engine.record.ordering_fields import OrderingFields
from lakehouse_engine.record.payloads import payload_of


@dataclass(frozen=True, slots=True)
class MergeRules:
    """`key_generator` is None for tables whose rows carry their key (`_hoodie_record_key`); `marks` says which rows are deletions."""

    merger: RecordMerger
    ordering: OrderingFields
    key_generator: KeyGenerator | None = None
    marks: DeleteMarks = HUDI_MARK

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> MergeRules:
        """`schema` has the table's user columns. An ordering field that is none of them counts as equal in all rows, as in Hudi.

        Raises `UnsupportedTableError` for a payload class or key generator that is not known.
        """
        payload = payload_of(config)
        return cls(
            payload.merger,
            payload.ordering(config, schema),
            None if config.populates_meta_fields else key_generator_of(config),
            payload.delete_marks(config.properties),
        )

    def columns(self, schema: pa.Schema, *, base: bool) -> list[str]:
        """Columns that a merge reads, of a base file or of logs; `schema` has the table's user columns."""
        names = [RECORD_KEY] if self.key_generator is None else list(self.key_generator.record_key_fields)
        if not base or self.merger.compares_ordering:
            names += self.ordering.roots
        if not base:
            names += self.marks.columns(schema.names)
        return list(dict.fromkeys(names))

    def record_keys(self, table: pa.Table) -> pa.Array:
        """The key of every row."""
        if self.key_generator is not None:
            return self.key_generator.record_keys(table)
        return table.column(RECORD_KEY).combine_chunks()

    def deletions(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows of logs are deletions."""
        return self.marks.of(table)
