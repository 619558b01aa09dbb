"""Plans a merge-on-read table's file groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.numbered import FoundNumbers
from lakehouse_engine.write.locate.settle import SliceHits
from lakehouse_engine.write.locate.stored_once import check_stored_once
from lakehouse_engine.write.locate.tagging import find_hits
from lakehouse_engine.write.locate.target import Write
from lakehouse_engine.write.plan.mor_buckets import log_deletes, log_unseen, looks_up_deletes
from lakehouse_engine.write.plan.mor_changes import DeltaPlan
from lakehouse_engine.write.plan.mor_upsert import Upsert, marked_rows


def plan_inserts(write: Write, batch: Batch, runner: TaskRunner) -> DeltaPlan:
    """Every row of the batch is new: to a small file first, then new groups, without lookups.

    In a table with buckets a log takes new rows and known ones alike, so there it is an upsert.
    """
    if isinstance(write.context.index, BucketIndex):
        return plan_upsert(write, batch, None, runner)
    plan = DeltaPlan(write, batch)
    plan.insert(np.flatnonzero(~marked_rows(plan)).astype(np.int64))
    return plan


def plan_deletes(write: Write, batch: Batch, runner: TaskRunner) -> DeltaPlan:
    """Delete every stored row with a key of the batch."""
    plan = DeltaPlan(write, batch)
    if isinstance(write.context.index, BucketIndex):
        _check_buckets(plan, batch, runner)
        log_deletes(plan, write.context.index.layout, batch)
        return plan
    for hits in _hits(plan, batch, runner, ordered=False):
        plan.drop(hits, hits.alive, batch)
    return plan


def plan_upsert(write: Write, batch: Batch, deletes: Batch | None, runner: TaskRunner) -> DeltaPlan:
    """Known keys go to their place (or are deleted there, if they move), new ones to a small file and new groups."""
    plan = DeltaPlan(write, batch)
    if isinstance(write.context.index, BucketIndex) and not (deletes is not None and looks_up_deletes(write.context, deletes)):
        _check_buckets(plan, batch, runner)
        plan.batch = log_unseen(plan, write.context.index.layout)
    upsert = Upsert(plan, runner, _hits(plan, plan.batch, runner, ordered=True))
    upsert.update()
    if deletes is not None:
        _add_deletes(plan, batch, deletes, runner)
    plan.moves = upsert.insert()
    return plan


def plan_replacement(write: Write, batch: Batch, gone: Sequence[FoundNumbers]) -> DeltaPlan:
    """Delete stored rows by number; every row of the batch is new.

    Keys may repeat if rows are deleted by number, and a log names rows by key: so these slices are rewritten.
    """
    plan = DeltaPlan(write, batch)
    for one in gone:
        change = plan.change(one.piece)
        change.rewrite = True
        change.gone.append(one.positions)
        change.seqnos.append(one.seqnos)
    plan.insert(np.flatnonzero(~marked_rows(plan)).astype(np.int64))
    return plan


def _add_deletes(plan: DeltaPlan, batch: Batch, deletes: Batch, runner: TaskRunner) -> None:
    """Keys to delete that are not also in the batch (that is an upsert), and are not older than the stored row."""
    context = plan.context
    rest = deletes.without(batch, is_global=context.is_global)
    if isinstance(context.index, BucketIndex) and not looks_up_deletes(context, rest):
        _check_buckets(plan, rest, runner)
        rest = log_deletes(plan, context.index.layout, rest)
    if not len(rest.rows):
        return
    ordered = context.merger.compares_ordering
    for hits in _hits(plan, rest, runner, ordered=ordered):
        plan.drop(hits, hits.alive & hits.wins, rest)


def _hits(plan: DeltaPlan, batch: Batch, runner: TaskRunner, *, ordered: bool) -> list[SliceHits]:
    """`find_hits`. Raises as `check_stored_once`."""
    found = find_hits(plan.write, batch, runner, ordered=ordered)
    check_stored_once(plan.context, batch, (hits.rows[hits.alive] for hits in found))
    return found


def _check_buckets(plan: DeltaPlan, batch: Batch, runner: TaskRunner) -> None:
    """`check_stored_once` if nothing else is looked up: base files may hold a key more than once, logs on top may not."""
    if plan.context.single_rows:
        check_stored_once(plan.context, batch, (tagged.rows for tagged in plan.write.tag(batch, runner)))
