"""What is not in order on a table, and who sees to it. The same is done before every change of the table; here it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.actions.locked import locked_table
from lakehouse_engine.actions.rollback.plan import plan_rollback
from lakehouse_engine.actions.rollback.request import is_service_plan
from lakehouse_engine.compat import StrEnum
from lakehouse_engine.format.file_names import TEMP_FOLDER, is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.view.listing import StorageLister
from lakehouse_engine.view.table_state import TableState


class DisorderKind(StrEnum):
    DEAD_WRITE = "dead_write"
    UNFINISHED_ROLLBACK = "unfinished_rollback"
    UNFINISHED_RESTORE = "unfinished_restore"
    LEFTOVER_MARKERS = "leftover_markers"
    UNFINISHED_CLEAN = "unfinished_clean"
    UNFINISHED_SAVEPOINT = "unfinished_savepoint"
    PENDING_SERVICE = "pending_service"
    ORPHAN = "orphan"


REPAIRED = (
    DisorderKind.DEAD_WRITE,
    DisorderKind.UNFINISHED_ROLLBACK,
    DisorderKind.UNFINISHED_RESTORE,
    DisorderKind.LEFTOVER_MARKERS,
)
"""What a repair sees to. The rest is harmless, and waits for what the message names."""


@dataclass(frozen=True, slots=True)
class Disorder:
    """`what` is an instant, or a path relative to the table."""

    kind: DisorderKind
    what: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """`repaired` was seen to (on a dry run: would be), `left` was not."""

    table: str
    repaired: tuple[Disorder, ...]
    left: tuple[Disorder, ...]
    dry_run: bool = False


def repair(storage: Storage, *, lock_timeout_ms: int, dry_run: bool = False) -> RepairReport:
    """Take dead writes back, finish rollbacks and restores that were cut off, remove their leftovers.

    Raises as `locked_table`. A dry run takes no lock: what it calls a dead write may be one at work.
    """
    before = list(disorders(TableState.load(storage)))
    if dry_run:
        wanted = tuple(one for one in before if one.kind in REPAIRED)
        left = tuple(one for one in before if one.kind not in REPAIRED)
        return RepairReport(table=storage.root, repaired=wanted, left=left, dry_run=True)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        after = list(disorders(state.refresh()))
    remaining = {(one.kind, one.what) for one in after}
    repaired = tuple(one for one in before if (one.kind, one.what) not in remaining)
    return RepairReport(table=storage.root, repaired=repaired, left=tuple(after))


def disorders(state: TableState) -> Iterator[Disorder]:
    """What is pending or left over. Partitions are listed for files that no instant accounts for."""
    for instant in state.timeline.pending():
        yield _pending(state, instant)
    yield from _leftovers(state)
    yield from _orphans(state)


def _pending(state: TableState, instant: Instant) -> Disorder:
    time = instant.requested_time
    if instant.action in _UNFINISHED:
        kind, message = _UNFINISHED[instant.action]
        return Disorder(kind, time, message)
    if is_service_plan(state, instant):
        runs = "run it, or restore the table to before it" if instant.action is Action.REPLACE_COMMIT else "`compact --op run` runs it"
        return Disorder(DisorderKind.PENDING_SERVICE, time, f"the {instant.action} is planned and waits; {runs}")
    requests = plan_rollback(state, instant).rollback_requests or ()
    files = sum(len(request.files_to_be_deleted) for request in requests)
    return Disorder(DisorderKind.DEAD_WRITE, time, f"the {instant.action} did not complete: it is taken back, and its {files} files go")


_UNFINISHED = {
    Action.ROLLBACK: (DisorderKind.UNFINISHED_ROLLBACK, "the rollback was cut off: it is finished"),
    Action.RESTORE: (DisorderKind.UNFINISHED_RESTORE, "the restore was cut off: it is finished"),
    Action.CLEAN: (DisorderKind.UNFINISHED_CLEAN, "the clean was cut off: the next clean finishes it"),
    Action.SAVEPOINT: (DisorderKind.UNFINISHED_SAVEPOINT, "the savepoint was not completed and keeps nothing; delete it, or make it again"),
    Action.INDEXING: (DisorderKind.PENDING_SERVICE, "indexing is planned by Hudi, and done by it"),
}


def _leftovers(state: TableState) -> Iterator[Disorder]:
    pending = {instant.requested_time for instant in state.timeline.pending()}
    for folder in state.storage.list(TEMP_FOLDER):
        if folder.is_directory and folder.name.isdigit() and folder.name not in pending:
            files = len(state.storage.walk(folder.path))
            yield Disorder(DisorderKind.LEFTOVER_MARKERS, folder.path, f"{files} files that a finished write left: they are removed")


def _orphans(state: TableState) -> Iterator[Disorder]:
    """Data files of instants that are nowhere on the timeline, and not older than it."""
    known = {instant.requested_time for instant in state.timeline}
    lister = StorageLister(state.storage)
    for partition in lister.partitions():
        for entry in lister.files(partition):
            if not (is_base_file_name(entry.name) or is_log_file_name(entry.name)):
                continue
            file = parse_base_file(partition, entry.name) if is_base_file_name(entry.name) else parse_log_file(partition, entry.name)
            time = file.base_instant if isinstance(file, LogFile) else file.instant_time
            if time not in known and not state.timeline.is_committed(time):
                message = f"{entry.size} bytes of the instant {time}, which the timeline does not have; no reader sees them"
                yield Disorder(DisorderKind.ORPHAN, entry.path, message)
