"""Sorts the entries of an index of keys in bounded memory: sorted runs in files, merged group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import RecordKeyError
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, distinct_locations, encode_locations
from lakehouse_engine.metadata_table.partitions import group_numbers

_STEP = 64 * 1024
"""Entries of a run that are compared at once."""
_ENTRIES = pa.schema([pa.field("key", pa.binary()), pa.field("place", pa.int32())])


@dataclass(frozen=True, slots=True)
class _Run:
    """Entries by group and key; those of group i are at `ends[i]` up to `ends[i + 1]`."""

    entries: pa.Table
    ends: npt.NDArray[np.int64]

    def of_group(self, number: int) -> pa.Table:
        return self.entries.slice(int(self.ends[number]), int(self.ends[number + 1] - self.ends[number]))


@dataclass(slots=True)
class SortedLocations:
    """Entries of a record index with `groups` file groups. `add` all, then read each group once.

    Entries beyond the limit of `spill` are kept in its files. `schema` is that of the records.
    """

    schema: str
    groups: int
    spill: SpillTo
    _entries: SortedKeys = field(init=False)
    _payloads: list[pa.Array] = field(default_factory=list)
    _places: int = 0

    def __post_init__(self) -> None:
        self._entries = SortedKeys(self.groups, self.spill)

    def add(self, located: pa.Table) -> None:
        """Add rows in the columns of `LOCATED`."""
        if not located.num_rows:
            return
        codes, rows = distinct_locations(located)
        self._payloads.append(encode_locations(self.schema, located.select(LOCATIONS.names).take(pa.array(rows))))
        places = pa.array(codes + self._places, pa.int32())
        self._places += len(rows)
        self._entries.add(located.column("key").cast(pa.binary()), places)

    def by_group(self) -> Iterator[Iterable[Cells]]:
        """Sorted entries of each group, piece by piece. Raises `RecordKeyError` if a key is there twice."""
        yield from self._entries.by_group(pa.concat_arrays([pa.array([], pa.binary()), *self._payloads]))


@dataclass(slots=True)
class SortedKeys:
    """Keys of an index with `groups` file groups, each with the place of its payload. `route` gives the part of each key that is hashed to
    a group (None: all of it). `add` all, then read each group once.
    """

    groups: int
    spill: SpillTo
    route: Callable[[pa.Array], pa.Array] | None = None
    _runs: list[_Run] = field(default_factory=list)
    _held: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0

    def add(self, keys: pa.Array | pa.ChunkedArray, places: pa.Array) -> None:
        """Add keys (`binary`) and the numbers (`int32`) of their payloads."""
        entries = pa.Table.from_arrays([keys, places], schema=_ENTRIES)
        self._held.append(entries)
        self._bytes += entries.nbytes
        if self._bytes > self.spill.limit:
            self._end_run(spilled=True)

    def by_group(self, payloads: pa.Array) -> Iterator[Iterable[Cells]]:
        """Sorted entries of each group, piece by piece, with `payloads`. Raises `RecordKeyError` if a key is there twice."""
        if self._held:
            self._end_run(spilled=False)
        for number in range(self.groups):
            yield _merged([run.of_group(number) for run in self._runs], payloads)

    def _end_run(self, *, spilled: bool) -> None:
        entries = pa.concat_tables(self._held)
        self._held, self._bytes = [], 0
        keys = entries.column("key").combine_chunks()
        numbers = pa.array(group_numbers(keys if self.route is None else self.route(keys), self.groups))
        order = pc.sort_indices(entries.append_column("group", numbers), [("group", "ascending"), ("key", "ascending")])
        entries = entries.take(order).combine_chunks()
        ends = np.searchsorted(np.asarray(numbers.take(order)), np.arange(self.groups + 1))
        self._runs.append(_Run(self.spill.write(len(self._runs), entries) if spilled else entries, ends))


def _merged(runs: list[pa.Table], payloads: pa.Array) -> Iterator[Cells]:
    """Merge sorted runs. Each round takes the entries up to the least of the last keys that are compared, so that one run advances by a
    whole step.
    """
    begins = [0] * len(runs)
    last: bytes | None = None
    while any(begin < run.num_rows for begin, run in zip(begins, runs, strict=True)):
        windows = [run.slice(begin, _STEP) for begin, run in zip(begins, runs, strict=True)]
        goes_on = [begin + window.num_rows < run.num_rows for begin, window, run in zip(begins, windows, runs, strict=True)]
        ends = [window.column("key")[-1].as_py() for window, more in zip(windows, goes_on, strict=True) if more]
        taken = [_up_to(window, min(ends)) if ends else window for window in windows]
        begins = [begin + part.num_rows for begin, part in zip(begins, taken, strict=True)]
        entries = pa.concat_tables(taken).combine_chunks()
        entries = entries.take(pc.sort_indices(entries, [("key", "ascending")]))
        keys = entries.column("key").combine_chunks()
        _check_distinct(keys, last)
        last = keys[-1].as_py()
        yield Cells(keys, payloads.take(entries.column("place").combine_chunks()))


def _up_to(window: pa.Table, key: bytes) -> pa.Table:
    return window.slice(0, pc.sum(pc.less_equal(window.column("key"), key)).as_py() or 0)


def _check_distinct(keys: pa.Array, before: bytes | None) -> None:
    again = keys[1:].filter(pc.equal(keys[1:], keys[:-1]))
    twice = again[0].as_py() if len(again) else before if before is not None and keys[0].as_py() == before else None
    if twice is not None:
        raise RecordKeyError(
            f"the record key {twice.decode()!r} is in the table more than once, and a record index has one place for each key; remove the"
            " duplicates, or build the metadata table without record_index",
            record_key=twice.decode(),
        )
