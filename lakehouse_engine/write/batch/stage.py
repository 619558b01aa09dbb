"""Rows of a write: read once, before the table is locked, and kept for repeated use.

A query can take hours, and other writers do not wait for it. Its rows are keyed for the table as it was then. If the table has other
columns once it is locked, the kept rows are keyed again; the query is not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.errors import CommitConflictError
from lakehouse_engine.model.keys import DELETED_AT, RECORD_KEY
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.batch.input import ArrowInput, Input, RowKeying
from lakehouse_engine.write.source import Rows, RowSource


class Stage:
    """The rows of one write. A context manager: they are removed at its end."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._area = storage, StagingArea(storage)
        self._held: dict[int, tuple[RowKeying, RowSource]] = {}

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._area.remove()

    def folder(self) -> str:
        """Folder for results made from the rows, removed with them."""
        return self._area.folder()

    def check_there(self, table: str) -> None:
        """Raise `CommitConflictError` if the rows disappeared with a table that was dropped or replaced while they were read."""
        if not self._area.is_there():
            raise CommitConflictError(
                "another table was put in the place of this one while rows for it were read; nothing was written: run it again",
                table=table,
            )

    def holds(self, data: Input) -> bool:
        """True if rows of `data` are kept."""
        return id(data) in self._held

    def rows(self, data: Input, keying: RowKeying, arrangement: Arrangement | None = None) -> RowSource:
        """Keyed rows of `data`; read and arranged on the first call.

        Raises `WriteError`s for rows that cannot be stored.
        """
        held = self._held.get(id(data))
        if held is not None and held[0] == keying:
            return held[1]
        rows = data if held is None else ArrowInput(_as_given(held[1], data.schema))
        source = rows.stage(keying, self._storage, self._area.folder, arrangement)
        self._held[id(data)] = (keying, source)
        return source


def _as_given(source: RowSource, offered: pa.Schema) -> pa.Table:
    """Kept rows without the added key columns, but with deletion times, because their marks were removed."""
    names = {name.lower() for name in (*offered.names, DELETED_AT)}
    rows = source.take(None)
    return rows.select([name for name in rows.column_names if name.lower() in names])


@dataclass(frozen=True, slots=True)
class DatedSource:
    """Rows whose keys are generated from the instant and their place, kept from before there was an instant. `some_given`: others have
    their stored key.
    """

    source: RowSource
    instant_time: str
    some_given: bool = False

    @property
    def num_rows(self) -> int:
        return self.source.num_rows

    @property
    def column_names(self) -> Sequence[str]:
        return self.source.column_names

    def columns(self, names: Sequence[str], rows: Rows | None = None) -> pa.Table:
        return self._dated(self.source.columns(names, rows))

    def take(self, rows: Rows | None) -> pa.Table:
        return self._dated(self.source.take(rows))

    def slice(self, first: int, count: int) -> pa.Table:
        return self._dated(self.source.slice(first, count))

    def parts(self) -> Sequence[RowSource]:
        return [replace(self, source=part) for part in self.source.parts()]

    def only(self, rows: Rows) -> RowSource:
        return replace(self, source=self.source.only(rows))

    def _dated(self, rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(RECORD_KEY)
        if at < 0:
            return rows
        kept = rows.column(at)
        keys = pc.binary_join_element_wise(self.instant_time, kept, "")
        if self.some_given:
            # A given key begins with the instant at which it was made.
            keys = pc.if_else(pc.starts_with(kept, "_"), keys, kept)
        return rows.set_column(at, rows.schema.field(at), keys)
