"""Finds stored keys among the keys that are looked up.

For many keys Arrow's join is twice as fast as `index_in`, and builds its hash table three times as fast; each call costs a third of a
millisecond more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

Rows = npt.NDArray[np.int64]

JOINED = 100_000
"""Number of values, stored plus looked up, from which the join is used."""
_MOST_JOINED = 1 << 30
"""Bytes of keys in one hash table of the join, which numbers them with 32 bits."""


def matches(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> tuple[Rows, Rows]:
    """Ascending positions of the `stored` values that are among `keys`, and the position of each one's key (the first of equal keys). Null
    equals null.
    """
    joins = len(stored) + len(keys) >= JOINED and keys.nbytes <= _MOST_JOINED
    if joins and not (stored.null_count and keys.null_count):
        return _joined(stored, keys)
    found = pc.index_in(stored, value_set=keys)
    return np.flatnonzero(np.asarray(found.is_valid())).astype(np.int64), np.asarray(found.drop_null()).astype(np.int64)


def first_repeated(keys: pa.Array | pa.ChunkedArray) -> tuple[str, int] | None:
    """The first key that is there more than once, and how often; None if all are distinct."""
    if len(keys.unique()) == len(keys):  # half the time of the counts
        return None
    counts = keys.value_counts()
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    return repeated[0]["values"].as_py(), repeated[0]["counts"].as_py()


def _joined(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> tuple[Rows, Rows]:
    left, right = (
        acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.table({"key": column, name: np.arange(len(column))})))
        for column, name in ((stored, "at"), (keys, "number"))
    )
    join = acero.HashJoinNodeOptions("inner", ["key"], ["key"], ["at"], ["number"])
    # One thread, because tasks run in parallel.
    found = acero.Declaration("hashjoin", join, [left, right]).to_table(use_threads=False)
    at, numbers = (np.asarray(found.column(name)).astype(np.int64, copy=False) for name in ("at", "number"))
    if (np.diff(at) > 0).all():
        return at, numbers
    order = np.lexsort((numbers, at))
    first = order[np.flatnonzero(np.diff(at[order], prepend=-1))]
    return at[first], numbers[first]
