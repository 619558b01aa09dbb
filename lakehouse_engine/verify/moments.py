"""Earlier moments of the table: what a read as of each write of the active timeline would miss.

Files of archived writes that only earlier moments need are in no commit of the active timeline, and are not live any more.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.read.completeness import ExpectedFile, changed_sizes, lost_files, proven_since
from lakehouse_engine.timeline.archived import ArchivedTimeline
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.verify.retained import cleaned_files
from lakehouse_engine.view.archived_files import cleaned_by
from lakehouse_engine.view.table_state import TableState


def check_moments(state: TableState) -> Iterator[Finding]:
    """Files that were there as of a write of the active timeline, and that no clean took: gone, or of another size."""
    since, cleaned = proven_since(state), _Cleaned(state)
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


class _Cleaned:
    """What cleans deleted, by path, and base files by group and instant as well; archived cleans are read when those do not tell."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._paths = cleaned_files(state)
        self._bases = _bases(self._paths)
        self._has_archived = False

    def took(self, file: ExpectedFile) -> bool:
        if self._took(file):
            return True
        if not self._has_archived:
            self._has_archived = True
            state = self._state
            archive = ArchivedTimeline(state.storage, state.layout, state.config.archive_folder)
            try:
                found = {path for entry in archive.entries_of(archive.files()) for path in cleaned_by(entry)}
            except LakehouseError:
                return True  # the archive is a finding of its own, and what is in it cannot be told
            self._paths |= found
            self._bases |= _bases(found)
        return self._took(file)

    def _took(self, file: ExpectedFile) -> bool:
        group = (file.group.partition_path, file.group.file_id)
        return file.path in self._paths or (*group, file.instant_time) in self._bases or (not file.instant_time and group in self._groups)

    @property
    def _groups(self) -> set[tuple[str, str]]:
        return {(partition, file_id) for partition, file_id, _ in self._bases}


def _bases(paths: set[str]) -> set[tuple[str, str, str]]:
    found = set()
    for path in paths:
        partition, _, name = path.rpartition("/")
        if is_base_file_name(name):
            base = parse_base_file(partition, name)
            found.add((partition, base.file_id, base.instant_time))
    return found
