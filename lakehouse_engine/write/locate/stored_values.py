"""Columns of single rows of a base file by position: only row groups with such rows are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakehouse_engine.files.base_file import iter_base_file
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.source import Rows


def stored_values(storage: Storage, base: BaseFile, schema: pa.Schema, columns: Sequence[str], positions: Rows) -> pa.Table:
    """Rows at `positions` (file row numbers, any order), in that order, with the user columns of `schema`."""
    starts = np.cumsum([0, *(group.num_rows for group in read_footer(storage, base).row_groups)])
    groups = np.searchsorted(starts, positions, side="right") - 1
    wanted = np.unique(groups)
    parts = list(iter_base_file(storage, base, schema, columns=columns, row_groups=[int(number) for number in wanted]))
    if not parts:
        return pa.schema([schema.field(name) for name in columns]).empty_table()
    # The row groups that were read are now adjacent.
    begins = np.cumsum([0, *(part.num_rows for part in parts[:-1])])
    moved = begins[np.searchsorted(wanted, groups)] - starts[groups]
    return pa.concat_tables(parts).take(pa.array(positions + moved))
