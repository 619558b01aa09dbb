"""Key ranges of base files, as far as this process knows them: most files are excluded without being opened."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.files.footer import BaseFileFooter
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.guarantees import Bounds, FileGuarantees
from lakehouse_engine.storage.base import Storage

_MOST_SORTED = 200_000
"""Number of keys that are compared one by one with the files' bounds. Larger sets exclude few files, and only their first and last key
count.
"""


def bounds_of(footer: BaseFileFooter) -> Bounds | None:
    """Lowest and highest record key of a file; None if a row group does not say, or there is none."""
    lows = [group.min_key for group in footer.row_groups if group.min_key is not None]
    highs = [group.max_key for group in footer.row_groups if group.max_key is not None]
    return (min(lows), max(highs)) if footer.row_groups and len(lows) == len(highs) == len(footer.row_groups) else None


def may_have_keys(guarantees: FileGuarantees, storage: Storage, bases: Sequence[BaseFile], keys: pa.Array) -> list[BaseFile]:
    """Files that may hold some of the keys: those whose bounds enclose one, or are unknown."""
    known = guarantees.keys(storage, bases)
    bounded = [one for one in known if one is not None]
    may = iter(enclosing(bounded, keys))
    return [base for base, one in zip(bases, known, strict=True) if one is None or next(may)]


def enclosing(bounds: Sequence[Bounds], keys: pa.Array) -> npt.NDArray[np.bool_]:
    """For each pair of (inclusive) bounds, whether a key lies in between; keys compare by their UTF-8 bytes."""
    count = len(bounds)
    if not count or not len(keys):
        return np.zeros(count, dtype=bool)
    lows, highs = (pa.array([one[end] for one in bounds], keys.type) for end in (0, 1))
    if len(keys) > _MOST_SORTED:
        ends = pc.min_max(keys)
        overlap = pc.and_(pc.less_equal(lows, ends["max"]), pc.greater_equal(highs, ends["min"]))
        return np.asarray(overlap.to_numpy(zero_copy_only=False))
    # The sort is stable: among equals, a lower bound comes before a key, and a key before an upper bound.
    order = pc.array_sort_indices(pa.concat_arrays([lows, keys, highs])).to_numpy()
    before = np.empty(len(order), dtype=np.int64)
    before[order] = np.cumsum((order >= count) & (order < count + len(keys)))
    return before[count + len(keys) :] > before[:count]
