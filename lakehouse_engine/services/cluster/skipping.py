"""Estimates how many files a filter has to open, by the bounds in their footers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow.parquet as pq

from lakehouse_engine.engine import LocalRunner, looking_runner
from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.storage.base import Storage

_AT_ONCE = 8
"""Footers that are read at once in an object store."""

Bounds = tuple[Any, Any]


def opened(storage: Storage, bases: Sequence[BaseFile], columns: Iterable[str]) -> dict[str, float]:
    """For each column the share of the files (0 to 1) that a filter for one value opens, averaged over the least values of the files.

    Leaves out columns without bounds in some file, and all columns if there are no files.
    """
    runner = looking_runner(LocalRunner(1, waiting=_AT_ONCE), storage)
    footers = runner.run(lambda base: FOOTERS.read(storage, base), list(bases), name="footers")
    found = {name: [_bounds(footer, name) for footer in footers if footer.num_rows] for name in columns}
    return {name: share([one for one in bounds if one is not None]) for name, bounds in found.items() if bounds and None not in bounds}


def share(bounds: Sequence[Bounds]) -> float:
    """Share of the intervals (ends included) that hold the lower end of one of them, averaged over all of them."""
    lows, highs = sorted(low for low, _ in bounds), sorted(high for _, high in bounds)
    holding = sum(bisect_right(lows, low) - bisect_left(highs, low) for low in lows)
    return holding / len(bounds) ** 2


def _bounds(footer: pq.FileMetaData, column: str) -> Bounds | None:
    """The least and greatest value of a column in a file; None if a row group does not have them."""
    paths = [footer.schema.column(index).path for index in range(footer.num_columns)]
    if column not in paths:
        return None
    statistics = [footer.row_group(number).column(paths.index(column)).statistics for number in range(footer.num_row_groups)]
    if any(one is None or not one.has_min_max for one in statistics):
        return None
    return min(one.min for one in statistics), max(one.max for one in statistics)
