"""Earlier states of the table: files that a read as of a write of the active timeline would miss.

Files of archived writes that only earlier states need are neither in an active commit nor live.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakehouse_engine.manifest.missing import changed_sizes, lost_files
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.order import is_later
from lakehouse_engine.verify.cleaned import Cleaned
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.verify.suspects import suspects
from lakehouse_engine.view.table_state import TableState


def check_moments(state: TableState) -> Iterator[Finding]:
    """Files that were there as of a write of the active timeline, and that no clean took: gone, or of another size."""
    since, cleaned = state.proven_since, Cleaned(state)
    suspected, boundary = suspects(state, cleaned), state.archived_files().boundary
    for instant in state.timeline.completed().writes():
        time = instant.requested_time
        if is_later(since, time):
            continue  # savepointed, and checked as such
        told_by_all = not is_later(boundary, time) and state.savepointed_files(time) is None
        partitions = suspected if told_by_all else None
        if partitions is not None and not partitions:
            continue
        moment, within = state.order.moment(time), None if partitions is None else partitions.intersection
        slices = state.view.slices_as_of(moment) if partitions is None else _slices(state, moment, partitions)
        for file in lost_files(state.manifest, moment, slices, logs=True, within=within):
            if not cleaned.took(file):
                message = f"needed by reads as of {time}, and not there, though no clean deleted it"
                yield Finding(FindingKind.MISSING_FILE, file.path, message)
        for changed in changed_sizes(state.manifest, moment, slices, logs=True):
            message = f"has {changed.size} bytes; the commit {changed.instant_time} wrote {changed.written}"
            yield Finding(FindingKind.WRONG_SIZE, changed.path, message)


def _slices(state: TableState, moment: str, partitions: Iterable[str]) -> list[FileSlice]:
    return [piece for path in sorted(partitions) for piece in state.view.slices_as_of(moment, path)]
