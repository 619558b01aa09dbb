"""Inserted rows whose key is stored: added, skipped, or refused by `hoodie.datasource.insert.dup.policy`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.options.write import INSERT_DUP_POLICY
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.tagging import find_hits
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import NO_ROWS


def rows_to_insert(write: Write, batch: Batch, runner: TaskRunner) -> Batch:
    """Rows of a batch to add. Raises `DuplicateKeyError` if the policy refuses a stored key.

    As in Hudi, rows are compared with stored ones, not with each other.
    """
    policy = write.context.options.insert_dup_policy
    known = NO_ROWS if policy == "NONE" else _stored(write, batch, runner)
    if not len(known):
        return batch
    if policy == "FAIL":
        raise DuplicateKeyError(
            f"{len(known)} rows of the insert have a key that is stored already, for example {batch.keys[int(known[0])].as_py()!r}, and"
            f" {INSERT_DUP_POLICY.key} is FAIL. Nothing was written: leave those rows out, set it to DROP to have them left out, or update"
            " them by MERGE or an upsert",
            table=write.context.config.name,
        )
    return batch.part(np.setdiff1d(np.arange(len(batch.rows), dtype=np.int64), known))


def _stored(write: Write, batch: Batch, runner: TaskRunner) -> Rows:
    """Indices of rows whose key is stored, ascending. A lookup answers for one row per key; this includes the others."""
    if write.target.logs is None:
        found = [tagged.rows for tagged in write.tag(batch, runner)]
    else:
        found = [hits.rows[hits.alive] for hits in find_hits(write, batch, runner, ordered=False)]
    known = np.unique(np.concatenate([NO_ROWS, *found]))
    if not len(known):
        return known
    keys = batch.identity(write.context.is_global)
    return np.flatnonzero(pc.is_in(keys, value_set=keys.take(pa.array(known)))).astype(np.int64)
