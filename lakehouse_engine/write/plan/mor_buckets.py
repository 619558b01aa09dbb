"""Writes to merge-on-read tables with buckets: every row's file group is known without a lookup.

If the result is the same for every reader, nothing is read: rows of an existing bucket go to its log, updates and new records alike, and a
new bucket gets a base file. Otherwise keys are looked up as with any index, in their bucket's file group.

So a row whose ordering value loses is logged too. No snapshot shows it, but an incremental query of its commit does if it does not see the
base file, in ours as in Hudi's.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakehouse_engine.index.bucket import BucketLayout
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.locate.buckets import rows_by_bucket
from lakehouse_engine.write.locate.settle import below_zero
from lakehouse_engine.write.plan.mor_changes import DeltaPlan
from lakehouse_engine.write.plan.mor_upsert import marked_rows
from lakehouse_engine.write.tasks.base_files import Mask


def log_unseen(plan: DeltaPlan, layout: BucketLayout) -> Batch:
    """Plan the batch's rows whose result does not depend on stored rows; returns the rest of the batch.

    Such rows count as updates, as in Hudi, which does not know either.
    """
    batch, rest = plan.batch, [np.empty(0, np.int64)]
    marked = marked_rows(plan)
    special = marked | _told_differently(plan)
    for found in rows_by_bucket(layout, batch, plan.target.view):
        if found.piece is None or _must_look(plan, found.piece, bool(special[found.rows].any())):
            rest.append(found.rows)
            continue
        change, deleted = plan.change(found.piece), marked[found.rows]
        change.unseen.append(batch.rows[found.rows[~deleted]])
        if deleted.any():
            change.drop_keys(batch.keys.take(pa.array(found.rows[deleted])))
    return batch.part(np.sort(np.concatenate(rest)))


def log_deletes(plan: DeltaPlan, layout: BucketLayout, batch: Batch) -> Batch:
    """A delete of keys removes whatever is stored: it is logged for existing buckets.

    Buckets that are rewritten without logs lose rows by position: their part of the batch is returned, to be looked up.
    """
    rest = [np.empty(0, np.int64)]
    for found in rows_by_bucket(layout, batch, plan.target.view):
        if found.piece is None:
            continue
        change = plan.changes.get(found.piece.group)
        if change is not None and change.rewrite and not found.piece.log_files:
            rest.append(found.rows)
        else:
            plan.change(found.piece).drop_keys(batch.keys.take(pa.array(found.rows)))
    return batch.part(np.sort(np.concatenate(rest)))


def _must_look(plan: DeltaPlan, piece: FileSlice, special: bool) -> bool:
    """True if readers would disagree on the effect of a logged row, or if logging it would not express it.

    A row combined with the stored one needs that, and so does one that may not replace an equal. With ordering values, Hudi's versions
    differ on deletions: a marked row older than the stored one, and a row after a deletion that is older than the base row (hudi-format 7).
    Readers differ on rows without a value, and on values below zero that meet such a row. If values count only among logs, a row must not
    be logged behind a newer one.
    """
    rules = plan.logs.reader.rules
    if plan.context.unsaid_by_logs or not (plan.context.merger.whole_rows and plan.context.merger.equals_win):
        return True
    if not rules.ordering:
        return False
    if not rules.merger.compares_ordering:
        return bool(piece.log_files)
    return special or plan.logs.may_delete(piece)


def looks_up_deletes(context: WriteContext, deletes: Batch) -> bool:
    """True if keys to delete have ordering values that may lose against stored ones."""
    fields = context.ordering.roots if context.merger.compares_ordering else []
    return bool(fields) and set(fields) <= set(deletes.source.column_names)


def _told_differently(plan: DeltaPlan) -> Mask:
    """Rows with a null ordering value, or one that some readers do not rank above null."""
    ordering, batch, found = plan.logs.reader.rules.ordering, plan.batch, np.zeros(len(plan.batch.rows), dtype=bool)
    offered = batch.source.columns(ordering.roots, batch.rows) if len(batch.rows) and ordering else None
    for column in ordering.values(offered) if offered is not None else ():
        found |= np.asarray(column.is_null()) | below_zero([column])
    return found
