"""Keys that are stored more than once, which `insert` and `bulk_insert` allow. A change by key affects all their rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lakehouse_engine.errors import RepeatedKeyError
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS, Mask


def check_stored_once(context: WriteContext, batch: Batch, found: Iterable[Rows]) -> None:
    """Raise `RepeatedKeyError` for a write of single rows if a key of the batch is stored more than once.

    `found` has for each stored row the index of its key in the batch.
    """
    if not context.single_rows:
        return
    counts = np.bincount(np.concatenate([NO_ROWS, *found]), minlength=len(batch.keys))
    if (counts > 1).any():
        key, config = batch.keys[int(np.argmax(counts > 1))].as_py(), context.config
        raise RepeatedKeyError(
            f"the key {key!r} is stored {counts.max()} times, and single rows of it were to be changed, which cannot be told apart by key."
            " Nothing was written: delete all rows of the key and insert those that should stay, or write the table anew with one row a key"
            " (INSERT OVERWRITE ... QUALIFY row_number() OVER (PARTITION BY the key ORDER BY ...) = 1)",
            table=config.name,
        )


def repeated(rows: Rows) -> Mask:
    """Hits of a slice that belong to a batch row with several hits."""
    return np.asarray(np.bincount(rows)[rows] > 1) if len(rows) else np.zeros(0, dtype=bool)
