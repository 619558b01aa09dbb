"""`repair`: puts a table in order. Every change of the table does much of this first; here it is done on request."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakehouse_engine.commit.deletion import delete_strays
from lakehouse_engine.commit.leftovers.metafiles import put_back_metafiles
from lakehouse_engine.commit.leftovers.unpublished import all_dead_temporaries, remove_temporaries
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import accept_future as accept
from lakehouse_engine.repair.checkpoints import make_checkpoint, missing_checkpoint
from lakehouse_engine.repair.disorder import REPAIRED, Disorder, DisorderKind, RepairReport
from lakehouse_engine.repair.future import future
from lakehouse_engine.repair.leftovers import leftover_markers, orphans, staged_rows, strays, temporary_files
from lakehouse_engine.repair.pending import pending
from lakehouse_engine.repair.repairs import metafiles
from lakehouse_engine.repair.repairs.mend import mendings, unreadable_history
from lakehouse_engine.repair.repairs.properties import broken_properties, put_properties_back
from lakehouse_engine.repair.repairs.remedy import Mending
from lakehouse_engine.repair.repairs.unplanned import unplanned_restore
from lakehouse_engine.repair.unhealed import unhealed
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock, lock_holder
from lakehouse_engine.timeline.presence import told_if_gone
from lakehouse_engine.view.archive_gaps import ACCEPTED_ARCHIVE, LOST_ARCHIVE
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of `repair`."""

    lock_timeout_ms: int
    dry_run: bool = False
    accept_future: bool = False
    trust_files: bool = False
    accept_lost_archive: bool = False


def repair(
    storage: Storage,
    *,
    lock_timeout_ms: int,
    dry_run: bool = False,
    accept_future: bool = False,
    trust_files: bool = False,
    accept_lost_archive: bool = False,
) -> RepairReport:
    """Take dead writes back, finish interrupted rollbacks and restores, remove what killed processes left, and repair damaged metadata:
    what can be proven is made again, what nothing depends on is set aside, what protects something stays.

    `accept_future`: continue from instants that a wrong clock put into the future. `trust_files`: make the damaged record of a completed
    write again from the files with its instant, although nothing proves that none is missing. `accept_lost_archive`: an unknown write_id
    counts as new, although a lost part of the archive may have had it.

    Raises as `locked_table`. A dry run takes no lock and does not wait; what may belong to the lock's holder is left.
    """
    asked = _Asked(lock_timeout_ms, dry_run, accept_future, trust_files, accept_lost_archive)
    with told_if_gone(storage):
        return _repair(storage, asked)


def _repair(storage: Storage, asked: _Asked) -> RepairReport:
    blocking = _unopenable(storage)
    if blocking is None:
        return _repair_open(storage, asked)
    if asked.dry_run:
        # Other problems show only once the table can be opened.
        return RepairReport(table=storage.root, repaired=(blocking.disorder,), left=(), dry_run=True)
    with TableLock(storage, asked.lock_timeout_ms):
        again = _unopenable(storage)
        if again is not None and again.act is not None:
            logger.warning("repairing %s of %s: %s", again.disorder.what, storage.root, again.disorder.message)
            again.act()
        done = _repair(storage, asked)
    return replace(done, repaired=(blocking.disorder, *done.repaired))


def _repair_open(storage: Storage, asked: _Asked) -> RepairReport:
    """`repair` for a table that can be opened."""
    before = list(disorders(TableState.load(storage), lock_holder(storage), trust_files=asked.trust_files))
    kinds = (*REPAIRED, DisorderKind.FUTURE_INSTANT) if asked.accept_future else REPAIRED
    if asked.dry_run:
        wanted = tuple(one for one in before if one.kind in kinds)
        left = tuple(one for one in before if one.kind not in kinds)
        return RepairReport(table=storage.root, repaired=wanted, left=left, dry_run=True)
    if asked.accept_future:
        accept(storage, lock_timeout_ms=asked.lock_timeout_ms)
    with TableLock(storage, asked.lock_timeout_ms):
        # Repeats until nothing changes: one damaged file can mask another, and later steps may not get past it.
        mended = _mend(storage, asked.trust_files)
        if asked.accept_lost_archive:
            _accept_lost_archive(storage)
        with locked_table(storage, lock_timeout_ms=asked.lock_timeout_ms, corrupt_writes=True) as state:
            remove_temporaries(storage, all_dead_temporaries(storage))
            delete_strays(state, state.view.partitions())
            put_back_metafiles(state)
            make_checkpoint(state)
            after = list(disorders(state.refresh(), None))
    remaining = {(one.kind, one.what) for one in after}
    seen_to = [one for one in before if one.kind in kinds] + mended
    repaired = dict.fromkeys(one for one in seen_to if (one.kind, one.what) not in remaining)
    return RepairReport(table=storage.root, repaired=tuple(repaired), left=tuple(after))


def _accept_lost_archive(storage: Storage) -> None:
    """What was just recorded as lost. The table lock is held."""
    lost = ConfigStore(storage).read().properties.get(LOST_ARCHIVE)
    if lost:
        logger.warning("write_ids that may have been in lost archive files of %s count as new from now on: %s", storage.root, lost)
        ConfigStore(storage).update({ACCEPTED_ARCHIVE: lost})


def _unopenable(storage: Storage) -> Mending | None:
    """What prevents opening the table, if it can be repaired; raises as `broken_properties`."""
    properties = broken_properties(storage)
    if properties is not None:
        return Mending(properties, lambda: put_properties_back(storage))
    return unplanned_restore(storage) or unreadable_history(storage)


def _mend(storage: Storage, trust_files: bool) -> list[Disorder]:
    """Repair one file after the other, each once, examining the table in between: a repaired file may decide about another."""
    done: dict[str, Disorder] = {}
    while True:
        known = mendings(TableState.load(storage), trust_files=trust_files)
        found = (one for one in known if one.act is not None and one.disorder.what not in done)
        mending = next(found, None)
        if mending is None or mending.act is None:
            return list(done.values())
        logger.warning("repairing %s of %s: %s", mending.disorder.what, storage.root, mending.disorder.message)
        mending.act()
        done[mending.disorder.what] = mending.disorder


def disorders(state: TableState, holder: str | None, *, trust_files: bool = False) -> Iterator[Disorder]:
    """Pending, damaged and left-over items; `holder` holds the table lock and may be working.

    Lists every directory of the table, for unexplained files and for required ones; reads no data file.
    """
    damaged = [mending.disorder for mending in mendings(state, trust_files=trust_files)]
    named = {one.what.rpartition("/")[2].partition(".")[0].partition("_")[0] for one in damaged}
    found = [
        *damaged,
        *(pending(state, instant, holder) for instant in state.timeline.pending() if instant.requested_time not in named),
        *leftover_markers(state, holder),
        *staged_rows(state),
        *temporary_files(state),
        *metafiles.lost(state),
        *missing_checkpoint(state),
        *strays(state),
        *orphans(state),
        *future(state),
    ]
    yield from found
    yield from unhealed(state, {one.what for one in found})
