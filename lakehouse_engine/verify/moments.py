"""Earlier moments of the table: what a read as of each write of the active timeline would miss.

Files of archived writes that only earlier moments need are in no commit of the active timeline, and are not live any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.read.completeness import changed_sizes, lost_files, proven_since
from lakehouse_engine.verify.cleaned import Cleaned
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.view.table_state import TableState


def check_moments(state: TableState) -> Iterator[Finding]:
    """Files that were there as of a write of the active timeline, and that no clean took: gone, or of another size."""
    since, cleaned = proven_since(state), Cleaned(state)
    for instant in state.timeline.completed().writes():
        time = instant.requested_time
        if time < since:
            continue  # savepointed, and checked as such
        slices = state.view.slices_as_of(time)
        for file in lost_files(state, time, slices, logs=True):
            if not cleaned.took(file):
                message = f"needed by reads as of {time}, and not there, though no clean deleted it"
                yield Finding(FindingKind.MISSING_FILE, file.path, message)
        for changed in changed_sizes(state, time, slices, logs=True):
            message = f"has {changed.size} bytes; the commit {changed.instant_time} wrote {changed.written}"
            yield Finding(FindingKind.WRONG_SIZE, changed.path, message)
