"""What becomes of a stored row when a batch brings one of the same key: Hudi's payload classes (table format, "Merge semantics")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import OptionError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.record.ordering import incoming_wins, last_values_per_key, latest_per_key

Mask = npt.NDArray[np.bool_]


class RecordMerger(Protocol):
    """Decides on pairs of rows of one key. Stateless and picklable.

    Ordering arguments have one array a field, row i of both sides being a pair. Deletions that carry no ordering value (the delete
    operation) are not asked about: they always apply.
    """

    @property
    def whole_rows(self) -> bool:
        """Whether the result is always one of the two rows as it is, so that a stored row whose pair loses need not be touched."""

    @property
    def losers_matter(self) -> bool:
        """Whether an incoming row that is not the newer one may still change the stored row (by filling its nulls)."""

    @property
    def compares_ordering(self) -> bool:
        """Whether ordering values decide between a stored and an incoming row; otherwise they need not be read."""

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        """For each pair whether the incoming row counts as the newer one; None for all of them."""

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        """For each pair whose incoming row says `_hoodie_is_deleted` whether the stored row goes; None for all of them."""

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        """The resulting rows. Both tables have the same columns (no meta columns) and length; `wins` as returned by `wins`."""

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The batch with one row a key, and for each of them the number of the row it is (mostly) made of, ascending."""


@dataclass(frozen=True, slots=True)
class OverwriteWithLatest:
    """`OverwriteWithLatestAvroPayload`: the incoming row replaces the stored one; ordering counts within a batch only."""

    whole_rows = True
    losers_matter = False
    compares_ordering = False

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
    """`DefaultHoodieRecordPayload`: the incoming row replaces the stored one unless its ordering value is lower; deletions likewise."""

    whole_rows = True
    losers_matter = False
    compares_ordering = True

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return _unless_all(incoming_wins(base_ordering, incoming_ordering)) if base_ordering else None

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.wins(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        return choose(base, incoming, wins)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return _latest_rows(batch, keys, ordering)


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """`PartialUpdateAvroPayload`: the newer row's values, and the older row's where those are null, whichever of the two is stored.

    Deletions apply whatever their ordering value. Rows of one key in a batch fill each other's nulls in the same way.
    """

    whole_rows = False
    losers_matter = True
    compares_ordering = True

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
class UpdateColumns:
    """Another merger's result in some columns (`MERGE ... UPDATE SET` of those), the stored row's values in all others."""

    merger: RecordMerger
    columns: frozenset[str]

    whole_rows = False

    @property
    def losers_matter(self) -> bool:
        return self.merger.losers_matter

    @property
    def compares_ordering(self) -> bool:
        return self.merger.compares_ordering

    def wins(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.merger.wins(base_ordering, incoming_ordering)

    def deletes(self, base_ordering: Sequence[pa.Array], incoming_ordering: Sequence[pa.Array]) -> Mask | None:
        return self.merger.deletes(base_ordering, incoming_ordering)

    def combine(self, base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
        named = [name for name in base.column_names if name.lower() in self.columns]
        merged = self.merger.combine(base.select(named), incoming.select(named), wins)
        columns = [merged.column(name) if name in named else base.column(name) for name in base.column_names]
        return pa.Table.from_arrays(columns, schema=base.schema)

    def reduce(self, batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        return self.merger.reduce(batch, keys, ordering)


MERGERS: dict[str, RecordMerger] = {
    "OverwriteWithLatestAvroPayload": OverwriteWithLatest(),
    "DefaultHoodieRecordPayload": EventTime(),
    "PartialUpdateAvroPayload": PartialUpdate(),
}
"""By the last name of Hudi's payload class."""


def merger_of(config: TableConfig, payload_override: str = "", *, update_columns: Sequence[str] | None = None) -> RecordMerger:
    """The merger that the table names, else that of `payload_override` (a class, with or without its package).

    Where neither names one: what the Hudi that made the table does (`unstated_payload`). `update_columns` narrows it to the columns that
    a matched row takes from the batch. Raises `UnsupportedTableError` or `OptionError` for a class that is not known, and
    `OptionError` for an override that contradicts the table.
    """
    override = payload_override.strip().rsplit(".", 1)[-1]
    if override and override not in MERGERS:
        raise OptionError(f"the payload class {payload_override!r} is not known; the engine has {', '.join(MERGERS)}")
    stored = config.payload_class
    if stored and stored not in MERGERS:
        raise UnsupportedTableError(
            f"the table's payload class {stored} is not known; the engine has {', '.join(MERGERS)}", table=config.name
        )
    if stored and override and stored != override:
        raise OptionError(
            f"the table merges by {stored} (hoodie.compaction.payload.class); leave {override} out of the write", table=config.name
        )
    merger = MERGERS[stored or override or unstated_payload(config)]
    return merger if update_columns is None else UpdateColumns(merger, frozenset(name.lower() for name in update_columns))


def unstated_payload(config: TableConfig) -> str:
    """The payload class of a table that names none, which no table of ours is: this engine has always stored it.

    Hudi 0.15 stores none in copy-on-write tables and writes them by the writer's option, by default overwriting with the latest row
    (`DataSourceWriteOptions.PAYLOAD_CLASS_NAME`). Releases from 1.0 on store a merge mode, or infer it: event time with ordering fields.
    """
    mode = config.properties.get("hoodie.record.merge.mode", "").upper()
    made_by_0x = not mode and "hoodie.table.ordering.fields" not in config.properties
    if mode == "COMMIT_TIME_ORDERING" or not config.ordering_fields or (made_by_0x and config.table_type is TableType.COPY_ON_WRITE):
        return "OverwriteWithLatestAvroPayload"
    return "DefaultHoodieRecordPayload"


def choose(base: pa.Table, incoming: pa.Table, wins: Mask | None) -> pa.Table:
    """Rows of `incoming` where `wins` says so (None: everywhere), else of `base`."""
    if wins is None:
        return incoming
    mask = pa.array(wins)
    columns = [pc.if_else(mask, offered, stored) for stored, offered in zip(base.columns, incoming.columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=base.schema)


def _filled(stored: pa.ChunkedArray, offered: pa.ChunkedArray, wins: Mask | None) -> pa.ChunkedArray:
    """The newer side's values, the other's where those are null."""
    if wins is None:
        return pc.if_else(offered.is_valid(), offered, stored) if offered.null_count else offered
    has_new, has_old = np.asarray(offered.is_valid()), np.asarray(stored.is_valid())
    return pc.if_else(pa.array(np.where(wins, has_new, ~has_old)), offered, stored)


def _latest_rows(batch: pa.Table, keys: pa.Array, ordering: Sequence[pa.Array]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    rows = latest_per_key(keys, ordering)
    return (batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))), rows


def _unless_all(wins: Mask) -> Mask | None:
    return None if wins.all() else wins
