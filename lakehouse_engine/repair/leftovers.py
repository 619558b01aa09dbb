"""Files that no instant of the timeline explains."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.commit.leftovers.strays import stray_files
from lakehouse_engine.commit.leftovers.unpublished import all_dead_temporaries
from lakehouse_engine.commit.staging import dead_stages
from lakehouse_engine.format.file_names import TEMP_FOLDER, is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.repair.disorder import Disorder, DisorderKind
from lakehouse_engine.repair.repairs.lost_plans import promised_logs
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.table_state import TableState


def leftover_markers(state: TableState, holder: str | None) -> Iterator[Disorder]:
    """Marker folders of writes that are not pending. The holder of the lock may just have committed, and be about to remove them."""
    pending = {instant.requested_time for instant in state.timeline.pending()}
    for folder in state.storage.list(TEMP_FOLDER):
        if folder.is_directory and folder.name.isdigit() and folder.name not in pending:
            files = len(state.storage.walk(folder.path))
            if holder is None:
                yield Disorder(DisorderKind.LEFTOVER_MARKERS, folder.path, f"{files} files that a finished write left: they are removed")
            else:
                yield Disorder(DisorderKind.AT_WORK, folder.path, f"{files} files of a finished write; {holder} is at work on the table")


def staged_rows(state: TableState) -> Iterator[Disorder]:
    """Staged rows of dead writes."""
    for folder in dead_stages(state.storage, state.storage.list(TEMP_FOLDER)):
        files = len(state.storage.walk(folder))
        yield Disorder(DisorderKind.LEFTOVER_MARKERS, folder, f"{files} files of rows that a write which died had staged: they are removed")


def temporary_files(state: TableState) -> Iterator[Disorder]:
    """Temporary files of killed processes, to be removed."""
    for entry in all_dead_temporaries(state.storage):
        message = f"{entry.size} bytes that a killed process was about to publish: they are removed"
        yield Disorder(DisorderKind.TEMPORARY_FILE, entry.path, message)


def strays(state: TableState) -> Iterator[Disorder]:
    """Files with a completed instant that no commit names; other readers may take them for data."""
    for path in stray_files(state, state.view.partitions()):
        message = "a task attempt that outlived its commit left it, and no commit names it: it is removed"
        yield Disorder(DisorderKind.STRAY_FILE, path, message)


def orphans(state: TableState) -> Iterator[Disorder]:
    """Data files of instants that are not on the timeline and not older than it."""
    known = {instant.requested_time for instant in state.timeline}
    lister, promised = StorageLister(state.storage), promised_logs(state)
    for partition in lister.partitions():
        for entry in lister.files(partition):
            if not (is_base_file_name(entry.name) or is_log_file_name(entry.name)):
                continue
            file = parse_base_file(partition, entry.name) if is_base_file_name(entry.name) else parse_log_file(partition, entry.name)
            time = file.instant_time
            if entry.path not in promised and time not in known and not state.timeline.is_committed(time):
                message = f"{entry.size} bytes of the instant {time}, which the timeline does not have; no reader sees them"
                yield Disorder(DisorderKind.ORPHAN, entry.path, message)
