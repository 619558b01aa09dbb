"""Which of some stored keys are among those that are looked for.

Of many keys Arrow's join finds them in half the time of `index_in`, and makes its table of the keys three times as fast; a call of it takes
a third of a millisecond longer, whatever it is given.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

Rows = npt.NDArray[np.int64]

JOINED = 100_000
"""Values, stored and looked for, from which they are joined."""
_MOST_JOINED = 1 << 30
"""Bytes of keys in one table of the join, which numbers them by 32 bits."""


def matches(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> tuple[Rows, Rows]:
    """The numbers of the `stored` values that are one of the `keys`, ascending, and the number of the key that each of them is: of keys
    that are there twice the first. A null is a value as others are.
    """
    joins = len(stored) + len(keys) >= JOINED and keys.nbytes <= _MOST_JOINED
    if joins and not (stored.null_count and keys.null_count):
        return _joined(stored, keys)
    found = pc.index_in(stored, value_set=keys)
    return np.flatnonzero(np.asarray(found.is_valid())).astype(np.int64), np.asarray(found.drop_null()).astype(np.int64)


def _joined(stored: pa.Array | pa.ChunkedArray, keys: pa.Array) -> tuple[Rows, Rows]:
    left, right = (
        acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.table({"key": column, name: np.arange(len(column))})))
        for column, name in ((stored, "at"), (keys, "number"))
    )
    join = acero.HashJoinNodeOptions("inner", ["key"], ["key"], ["at"], ["number"])
    # One thread, for tasks run beside each other.
    found = acero.Declaration("hashjoin", join, [left, right]).to_table(use_threads=False)
    at, numbers = (np.asarray(found.column(name)).astype(np.int64, copy=False) for name in ("at", "number"))
    if (np.diff(at) > 0).all():
        return at, numbers
    order = np.lexsort((numbers, at))
    first = order[np.flatnonzero(np.diff(at[order], prepend=-1))]
    return at[first], numbers[first]
