"""The timeline of a table in another layout: active instants, archived ones, and commits kept for savepoints. First made, then written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived import archive_file_name, render_archive
from lakehouse_engine.format.v6.converted import Conversion, is_clustering_plan
from lakehouse_engine.format.v8.history import HistoryEntry
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import age, in_time_order
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.history import History, LsmHistory
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.lsm_writer import LsmWriter
from lakehouse_engine.timeline.other_layout import OtherLayout
from lakehouse_engine.view.table_state import TableState

_StateFile = tuple[Instant, bytes]


@dataclass(frozen=True, slots=True)
class NewTimeline:
    """State files of the active timeline in the order of writing, and completed ones that are kept for savepoints.

    The archived instants are in `archived`, in order, for a history, or rendered as one file in `archive_content`. `number` is the archive
    number that the checkpoint of live files records, so that the checkpoint stays valid.
    """

    format: TableFormat
    archive: History
    states: Sequence[_StateFile]
    kept: Sequence[_StateFile]
    number: int = 0
    archived: Sequence[HistoryEntry] = ()
    archive_content: bytes = b""

    def write(self, storage: Storage) -> None:
        """Write the whole timeline, durably. The caller holds the table's lock, and no file of that layout exists yet."""
        for instant, data in self.states:
            storage.create(f"{self.format.timeline_folder}/{self.format.file_name(instant)}", data)
        KeptCommits(storage, self.format).keep(self.kept)
        if self.number and isinstance(self.archive, LsmHistory):
            LsmWriter(self.archive).start(self.archived, self.number)
        elif self.archive_content:
            storage.create(f"{self.archive.path}/{archive_file_name(self.number)}", self.archive_content)


def new_timeline(state: TableState, archive: History) -> NewTimeline:
    """The timeline of `state` in the layout that the table does not have; `archive` is the future place of archived instants.

    Raises `CorruptInstantError` and `MetadataError` if a completed instant does not decode.
    """
    other = OtherLayout(state.storage, state.config, state.format).other
    found = _read(state)
    conversion = Conversion(state.format, other, frozenset(_clusterings(found)))
    states = [conversion.state(*one) for one in found]
    kept = [conversion.state(*one) for one in _kept(state)]
    source = state.archived_timeline
    number = max(source.newest_number(), state.archived_files().counted)
    if not number:
        return NewTimeline(other, archive, states, kept)
    # Instants that a restore put back exist on the active timeline only.
    active = {_key(one) for one in state.timeline.completed()}
    if isinstance(source, LsmHistory):
        stored = in_time_order(source.stored(), lambda entry: age(entry.instant.requested_time))
        instants = [conversion.archived(one) for one in stored if _key(one.instant) not in active]
        content = render_archive(instants, ArchiveOptions().batch) if instants else b""
        return NewTimeline(other, archive, states, kept, number, archive_content=content)
    entries = [one for one in conversion.history(source.entries()) if _key(one.instant) not in active]
    return NewTimeline(other, archive, states, kept, number, entries)


def _read(state: TableState) -> list[_StateFile]:
    """State files in the order of taking effect: Hudi derives completion times of version 6 from modification times."""
    files = state.timeline_files
    order = in_time_order(files, lambda one: state.order.moment(one.requested_time))
    return [(one, state.storage.read(files[one].path)) for one in sorted(order, key=lambda one: one.state.rank)]


def _clusterings(states: Sequence[_StateFile]) -> list[str]:
    """Times of replace commits, pending or not, that were planned as clusterings."""
    planned = [(one, data) for one, data in states if one.action is Action.REPLACE_COMMIT and one.state is State.REQUESTED]
    return [one.requested_time for one, data in planned if _plans_clustering(data)]


def _plans_clustering(data: bytes) -> bool:
    try:
        return is_clustering_plan(data)
    except MetadataError:
        return False  # not a pending one: those were checked before


def _kept(state: TableState) -> list[_StateFile]:
    """Completed commits that are kept for savepoints. Other states have the same file names in both layouts."""
    kept = KeptCommits(state.storage, state.format)
    found = [one for one in kept.states() if one.is_completed]
    return [(one, state.storage.read(f"{kept.folder}/{state.format.file_name(one)}")) for one in found]


def _key(instant: Instant) -> tuple[str, Action]:
    return instant.requested_time, instant.action.completes_as
