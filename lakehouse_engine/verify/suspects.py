"""Partitions in which earlier states may miss a file: those where a file that commits name is absent and was not cleaned.

Checking a state costs as much as there are writes. If nothing is absent, no state has to be checked.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from lakehouse_engine.manifest.from_commits import NO_COMMIT
from lakehouse_engine.manifest.manifest import ExpectedFile
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.live_files import WrittenFile
from lakehouse_engine.model.order import is_later
from lakehouse_engine.verify.cleaned import Cleaned
from lakehouse_engine.view.table_state import TableState


def suspects(state: TableState, cleaned: Cleaned) -> frozenset[str] | None:
    """Partitions in which a read as of an earlier write may miss a file; None for all, if the files of archived writes are unknown.

    States kept by a savepoint (`TableState.savepointed_files`) are not checked here.
    """
    archived, since = state.archived_files(), state.proven_since
    if not archived.is_known:
        return None
    listed, told = _Listed(state), _Told(state.timeline.pending_compactions)
    told.add(archived.live.files())
    found: set[str] = set()
    for group, file in _named(state):
        if group.partition_path not in found and not (listed.has(file) or (listed.lacks(file) and _was_cleaned(cleaned, group, file))):
            found.add(group.partition_path)
    for instant in state.timeline.completed().writes().instants:
        if is_later(since, instant.requested_time):
            continue
        found.update(told.unknown(state.commit_metadata(instant)))
        if is_later(instant.requested_time, archived.boundary):
            told.add(state.write_record(instant).files)
    return frozenset(found)


def _named(state: TableState) -> Iterator[tuple[FileGroupId, WrittenFile]]:
    """Files that an earlier state may need: those of active writes, and of archived ones those that were live."""
    yield from state.archived_files().live.files()
    for record in state.active_writes():
        yield from record.files


def _was_cleaned(cleaned: Cleaned, group: FileGroupId, file: WrittenFile) -> bool:
    return cleaned.took(ExpectedFile(group, file.instant_time, file.path))


class _Listed:
    """Files that exist, as the view has them in slices."""

    def __init__(self, state: TableState) -> None:
        self._sizes: dict[str, int] = {}
        for partition in state.view.partitions():
            for group in state.view.file_groups(partition):
                for piece in group.slices:
                    if piece.base_file is not None:
                        self._sizes[piece.base_file.path] = piece.base_file.size
                    self._sizes.update((log.path, log.size) for log in piece.log_files)

    def lacks(self, file: WrittenFile) -> bool:
        return file.path not in self._sizes

    def has(self, file: WrittenFile) -> bool:
        """True if it exists with the bytes that were written; a log may be longer."""
        size = self._sizes.get(file.path)
        return size is not None and (size < 0 or (size >= file.size if file.is_log else file.size <= 0 or size == file.size))


class _Told:
    """Groups whose first file is known from writes so far. For others, `prevCommit` of a later write may say that there was one."""

    def __init__(self, pending: Container[str | None]) -> None:
        self._pending = pending
        self._bases: dict[FileGroupId, str] = {}
        self._begun: set[tuple[FileGroupId, str]] = set()
        self._named: set[FileGroupId] = set()

    def add(self, files: Iterable[tuple[FileGroupId, WrittenFile]]) -> None:
        for group, file in files:
            self._named.add(group)
            if file.is_log:
                self._begun.add((group, file.base_instant))
            else:
                known = self._bases.get(group)
                if known is None or is_later(known, file.instant_time):
                    self._bases[group] = file.instant_time

    def unknown(self, metadata: HoodieCommitMetadata) -> Iterator[str]:
        """Partitions of groups that a write continues or replaces, and about which nothing is known."""
        born = set()
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                group, previous = FileGroupId(partition, stat.file_id or ""), stat.prev_commit
                base = self._bases.get(group)
                if previous in NO_COMMIT or previous in self._pending:
                    born.add(group)
                elif (base is None or is_later(base, str(previous))) and (group, str(previous)) not in self._begun:
                    yield partition
        for group in metadata.replaced_groups():
            if group not in self._named and group not in born:
                yield group.partition_path
