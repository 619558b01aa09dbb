"""Write the timeline of a table in another layout beside the one that counts: active instants, archived ones, and commits kept aside."""

from __future__ import annotations

from collections.abc import Sequence

from lakehouse_engine.errors import MetadataError
from lakehouse_engine.format.v6.archived import archive_file_name, render_archive
from lakehouse_engine.format.v6.converted import Conversion, is_clustering_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import age, in_time_order
from lakehouse_engine.options import ArchiveOptions
from lakehouse_engine.timeline.history import History, LsmHistory
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.lsm_writer import LsmWriter
from lakehouse_engine.timeline.other_layout import OtherLayout
from lakehouse_engine.view.table_state import TableState

_StateFile = tuple[Instant, bytes]


def write_timeline(state: TableState, archive: History) -> int:
    """Write it, durably; how many state files that were. `archive` is where archived instants go. The table's lock is held, and nothing of
    that layout is there.

    Raises `CorruptInstantError` and `MetadataError` where a completed instant does not decode.
    """
    other = OtherLayout(state.storage, state.config, state.layout).other
    found = _read(state)
    conversion = Conversion(state.layout, other, frozenset(_clusterings(found)))
    # In the order in which they show: Hudi takes completion times of version 6 from modification times.
    moved = [conversion.state(*one) for one in found]
    folder = other.timeline_folder
    for instant, data in moved:
        state.storage.create(f"{folder}/{other.file_name(instant)}", data)
    _write_kept(state, conversion)
    _write_archive(state, archive, conversion)
    return len(moved)


def _read(state: TableState) -> list[_StateFile]:
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
        return False  # no pending one: it was looked at before


def _write_kept(state: TableState, conversion: Conversion) -> None:
    """Other states than the completed one have the same name in both layouts."""
    kept = KeptCommits(state.storage, state.layout)
    for instant in kept.states():
        if instant.is_completed:
            path = f"{kept.folder}/{state.layout.file_name(instant)}"
            KeptCommits(state.storage, conversion.target).keep([conversion.state(instant, state.storage.read(path))])


def _write_archive(state: TableState, archive: History, conversion: Conversion) -> None:
    """With the number of the archive that the checkpoint of live files counts: it stays what it is. Instants that a restore put back on
    the active timeline are on that one only.
    """
    active = {_key(one) for one in state.timeline.completed()}
    source = state.archived_timeline
    number = max(source.newest_number(), state.archived_files().counted)
    if not number:
        return
    if isinstance(archive, LsmHistory):
        entries = conversion.history(source.entries())
        LsmWriter(archive).start([one for one in entries if _key(one.instant) not in active], number)
    elif isinstance(source, LsmHistory):
        stored = in_time_order(source.stored(), lambda entry: age(entry.instant.requested_time))
        instants = [conversion.archived(one) for one in stored if _key(one.instant) not in active]
        if instants:
            content = render_archive(instants, ArchiveOptions().batch)
            state.storage.create(f"{archive.path}/{archive_file_name(number)}", content)


def _key(instant: Instant) -> tuple[str, Action]:
    return instant.requested_time, instant.action.completes_as
