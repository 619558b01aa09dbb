"""Combines a stored row with an incoming row of the same key: Hudi's payload classes (table format, "Merge semantics")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.record.merging.ordering import has_value, incoming_wins, last_values_per_key, latest_per_key

Mask = npt.NDArray[np.bool_]

TOASTED = b"__debezium_unavailable_value"
"""Debezium's text for a large Postgres value that an update did not touch."""


class RecordMerger(Protocol):
    """Decides on pairs of rows of one key. Stateless and picklable.

    Ordering arguments have one array per field; row i of both sides is a pair. Deletions without an ordering value (the delete operation)
    are not passed: they always apply.
    """

    @property
    def whole_rows(self) -> bool:
        """True if the result is always one of the two rows unchanged, so a stored row whose pair loses need not be touched."""

    @property
    def losers_matter(self) -> bool:
        """True if an incoming row that is not newer may still change the stored row (by filling nulls)."""

    @property
    def compares_ordering(self) -> bool:
        """True if ordering values decide between stored and incoming rows; otherwise they need not be read."""

    @property
    def equals_win(self) -> bool:
        """True if an incoming row replaces a stored one with equal ordering values."""

    @property
    def earliest_of_equals(self) -> bool:
        """True if among rows with equal ordering values, in a batch or in logs, the first one wins."""

    @property
    def meta_of_newer(self) -> bool:
        """True if a combined row has the meta columns of the newer row, not of the later one."""

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        """For each pair, whether the incoming row is the newer one; None if all are."""

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        """For each pair whose incoming row has `_hoodie_is_deleted`, whether the stored row is deleted; None if all are."""

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        """The resulting rows. Both tables have the same columns (no meta columns) and length; `wins` comes from `wins`."""

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The batch with one row per key, and for each the ascending number of its (main) source row."""


@dataclass(frozen=True, slots=True)
class OverwriteWithLatest:
    """`OverwriteWithLatestAvroPayload`: the incoming row replaces the stored one; ordering matters only within a batch."""

    whole_rows = True
    losers_matter = False
    compares_ordering = False
    equals_win = True
    earliest_of_equals = False
    meta_of_newer = True

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        return choose(base, incoming, wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return _latest_rows(batch, keys, ordering)


@dataclass(frozen=True, slots=True)
class EventTime:
    """`DefaultHoodieRecordPayload`: the incoming row replaces the stored one unless its ordering value is lower; likewise for deletions.

    `late_deletions`: deletions apply whatever their ordering value (`EventTimeAvroPayload`). Without `equals_win` the incoming value must
    be higher, unless there is no stored one; with `earliest_of_equals` also within a batch (`FirstValueAvroPayload`).
    """

    equals_win: bool = True
    earliest_of_equals: bool = False
    late_deletions: bool = False

    whole_rows: ClassVar[bool] = True
    losers_matter: ClassVar[bool] = False
    compares_ordering: ClassVar[bool] = True
    meta_of_newer: ClassVar[bool] = True

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        if not base_ordering:
            return None
        won = incoming_wins(base_ordering, incoming_ordering, equals=self.equals_win)
        return _unless_all(won if self.equals_win else won | np.asarray(base_ordering[0].is_null()))

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None if self.late_deletions else self.wins(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        return choose(base, incoming, wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return _latest_rows(batch, keys, ordering, earliest=self.earliest_of_equals)


@dataclass(frozen=True, slots=True)
class Toasted:
    """`PostgresDebeziumAvroPayload`: event time, but text and binary values that Debezium did not get keep the stored value.

    Within a batch, and between logs, rows are taken unchanged.
    """

    whole_rows = False
    losers_matter = False
    compares_ordering = True
    equals_win = True
    earliest_of_equals = False
    meta_of_newer = False

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return EventTime().wins(base_ordering, incoming_ordering)

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.wins(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        columns = [_untoasted(stored, offered) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
        return choose(base, pa.Table.from_arrays(columns, schema=base.schema), wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return _latest_rows(batch, keys, ordering)


@dataclass(frozen=True, slots=True)
class FillNulls:
    """`OverwriteNonDefaultsWithLatestAvroPayload`: the incoming row's values, or the stored row's where those are null.

    Null is the default of all columns that Spark or this engine writes. Within a batch, and between logs, rows are taken unchanged.
    """

    whole_rows = False
    losers_matter = False
    compares_ordering = False
    equals_win = True
    earliest_of_equals = False
    meta_of_newer = False

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        columns = [_filled(stored, offered, None) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
        return choose(base, pa.Table.from_arrays(columns, schema=base.schema), wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return _latest_rows(batch, keys, ordering)


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """`PartialUpdateAvroPayload`: the newer row's values, or the older row's where those are null, whichever is stored.

    Deletions apply whatever their ordering value. Rows of one key in a batch fill each other's nulls the same way.
    """

    whole_rows = False
    losers_matter = True
    compares_ordering = True
    equals_win = True
    earliest_of_equals = False
    meta_of_newer = False

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return _unless_all(incoming_wins(base_ordering, incoming_ordering)) if base_ordering else None

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return None

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        columns = [_filled(stored, offered, wins) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=base.schema)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return last_values_per_key(batch, keys, ordering)


@dataclass(frozen=True, slots=True)
class FilledIn:
    """Partial updates of version 9 (Hudi `PartialUpdateHandler`): the newer row's values, or the older row's where those are null or (with
    a `marker`) equal that text.

    `by_event_time`: the newer row has the greater ordering value, and deletions compare likewise; otherwise it is the later row. Rows of
    one key in a batch, and in logs, fill each other the same way.
    """

    by_event_time: bool
    marker: str | None = None

    whole_rows: ClassVar[bool] = False
    equals_win: ClassVar[bool] = True
    earliest_of_equals: ClassVar[bool] = False
    meta_of_newer: ClassVar[bool] = True

    @property
    def losers_matter(self) -> bool:
        return self.by_event_time

    @property
    def compares_ordering(self) -> bool:
        return self.by_event_time

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return EventTime().wins(base_ordering, incoming_ordering) if self.by_event_time else None

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.wins(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        columns = [_filled(stored, offered, wins, self._has) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
        return pa.Table.from_arrays(columns, schema=base.schema)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return last_values_per_key(batch, keys, ordering if self.by_event_time else (), has=self._has)

    def _has(self, column: pa.ChunkedArray) -> Mask:
        """Where the column has a value of its own."""
        if self.marker is None:
            return has_value(column)
        return ~_is_text(column, self.marker.encode())


@dataclass(frozen=True, slots=True)
class UpdateColumns:
    """Takes another merger's result in some columns (`MERGE ... UPDATE SET` of those) and keeps the stored row's others.

    A stored row with a value in the column `deleted_at` is deleted: the row that wins against it is new, and stored unchanged.
    """

    merger: RecordMerger
    columns: frozenset[str]
    deleted_at: str = ""

    whole_rows = False
    meta_of_newer = False

    @property
    def losers_matter(self) -> bool:
        return self.merger.losers_matter

    @property
    def compares_ordering(self) -> bool:
        return self.merger.compares_ordering

    @property
    def equals_win(self) -> bool:
        return self.merger.equals_win

    @property
    def earliest_of_equals(self) -> bool:
        return self.merger.earliest_of_equals

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.merger.wins(base_ordering, incoming_ordering)

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.merger.deletes(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        named = [name for name in base.column_names if name.lower() in self.columns]
        merged = self.merger.combine(base.select(named), incoming.select(named), wins)
        columns = [merged.column(name) if name in named else base.column(name) for name in base.column_names]
        made = pa.Table.from_arrays(columns, schema=base.schema)
        if self.deleted_at not in base.column_names:
            return made
        revived = np.asarray(base.column(self.deleted_at).is_valid())
        return choose(made, incoming, revived if wins is None else revived & wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return self.merger.reduce(batch, keys, ordering)


def storing_as_given(merger: RecordMerger) -> RecordMerger:
    """Stores winning rows unchanged, nulls included, and also those with equal ordering values; late rows and deletions are handled by
    `merger`.
    """
    if merger.whole_rows and merger.equals_win:
        return merger
    if not merger.compares_ordering:
        return OverwriteWithLatest()
    return EventTime(late_deletions=isinstance(merger, PartialUpdate))


def choose(base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
    """Rows of `incoming` where `wins` is true (None: everywhere), else of `base`."""
    if wins is None:
        return incoming
    mask = pa.array(wins)
    columns = [pc.if_else(mask, offered, stored) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=base.schema)


def _filled(
    stored: pa.ChunkedArray, offered: pa.ChunkedArray, wins: Mask | None, has: Callable[[pa.ChunkedArray], Mask] = has_value
) -> pa.ChunkedArray:
    """The newer side's values, or the other's where it has none (where those are null)."""
    has_new = has(offered)
    if wins is None:
        return offered if has_new.all() else pc.if_else(pa.array(has_new), offered, stored)
    has_old = has(stored)
    return pc.if_else(pa.array(np.where(wins, has_new, ~has_old)), offered, stored)


def _untoasted(stored: pa.ChunkedArray, offered: pa.ChunkedArray) -> pa.ChunkedArray:
    missing = _is_text(offered, TOASTED)
    return pc.if_else(pa.array(missing), stored, offered) if missing.any() else offered


def _is_text(column: pa.ChunkedArray, text: bytes) -> Mask:
    """Where a text or binary column equals that value; nowhere for other types."""
    kind = column.type
    if not (pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind) or pat.is_large_binary(kind)):
        return np.zeros(len(column), np.bool_)
    return np.asarray(pc.fill_null(pc.equal(column, pa.scalar(text, kind)), False))


def _latest_rows(
    batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array], *, earliest: bool = False
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    rows = latest_per_key(keys, ordering, earliest=earliest)
    return (batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))), rows


def _unless_all(wins: Mask) -> Mask | None:
    return None if wins.all() else wins
