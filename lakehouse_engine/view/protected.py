"""Files that savepoints pin; only deleting the savepoint releases them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.model.files import join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.order import is_between, is_later, latest
from lakehouse_engine.model.savepoint import DamagedSavepoint, HoodieSavepointMetadata
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.table_state import TableState


def savepoint_metadata(state: TableState) -> dict[str, HoodieSavepointMetadata]:
    """Every completed savepoint by its instant, oldest first; a `DamagedSavepoint` for one that does not decode."""
    return {time: _metadata(state, time) for time in state.order.sorted(state.timeline.savepointed)}


def _metadata(state: TableState, time: str) -> HoodieSavepointMetadata:
    timeline = state.active
    try:
        return timeline.plan(HoodieSavepointMetadata, Instant(time, Action.SAVEPOINT, State.COMPLETED))
    except FormatError as error:
        return DamagedSavepoint(savepointed_by="", savepointed_at=0, comments=f"damaged: {error}")


def damaged_savepoints(state: TableState) -> dict[str, str]:
    """Paths of the files of damaged savepoints by instant, oldest first."""
    active, known = state.active, savepoint_metadata(state)
    times = [time for time, metadata in known.items() if isinstance(metadata, DamagedSavepoint)]
    return {time: active.path(Instant(time, Action.SAVEPOINT, State.COMPLETED)) for time in times}


def protected_files(
    state: TableState, *, up_to: str | None = None, known: Mapping[str, HoodieSavepointMetadata] | None = None
) -> dict[str, str]:
    """Path (relative to the table) of every pinned base and log file, with the instant of a savepoint that pins it.

    For savepoints up to `up_to`, or all. A base file of a compaction that was scheduled before a savepoint and completed after it is pinned
    too: a restored table reads it instead of the slice that it was made of. A damaged savepoint pins every file that is as old as it.
    `known`: what `savepoint_metadata` returned for this state.
    """
    found: dict[str, str] = {}
    for time, metadata in (savepoint_metadata(state) if known is None else known).items():
        if up_to is not None and state.order.is_after(time, up_to):
            continue
        if isinstance(metadata, DamagedSavepoint):
            found.update(dict.fromkeys(_written_up_to(state, time), time))
            continue
        pinned = list(pinned_paths(state, time, metadata))
        found.update(dict.fromkeys(_compacted_since(state, time, pinned), time))
        found.update(dict.fromkeys(pinned, time))
    return found


def pinned_paths(state: TableState, time: str, metadata: HoodieSavepointMetadata) -> Iterator[str]:
    """Listed files that a read as of the savepoint of `time` needs."""
    for partition, names in metadata.pinned_files().items():
        yield from (join_path(partition, name) for name in names if not is_of_later_write(state, time, name))


def is_of_later_write(state: TableState, time: str, name: str) -> bool:
    """True if a file listed by the savepoint of `time` is a log of a write that it does not show.

    Hudi lists every log of a slice that exists when the savepoint is made. In versions 8 and 9 a log belongs to one write, so those of
    later writes are not read as of the savepoint, and a restore deletes them. In version 6 one log has blocks of many writes.
    """
    if not is_log_file_name(name):
        return False
    writer = parse_log_file("", name).instant_time
    if not state.order.names_writer(writer):
        return False
    return not state.timeline.is_committed(writer) or state.order.is_after(writer, time)


def _written_up_to(state: TableState, time: str) -> Iterator[str]:
    lister = StorageLister(state.storage)
    for partition in lister.partitions():
        yield from (entry.path for entry in lister.files(partition) if is_between(_begun(partition, entry.name), "", time))


def _begun(partition: str, name: str) -> str:
    """Instant that began a data file's slice; "" for any other file."""
    if is_base_file_name(name):
        return parse_base_file(partition, name).instant_time
    return parse_log_file(partition, name).instant_time if is_log_file_name(name) else ""


def _compacted_since(state: TableState, time: str, pinned: Iterable[str]) -> Iterator[str]:
    """Base files of compactions up to `time` that are newer than the pinned ones of the same groups."""
    if state.config.table_type is not TableType.MERGE_ON_READ:
        return
    newest = _newest_bases(pinned)
    for instant in state.timeline.completed().up_to(state.order.moment(time)):
        if instant.action is Action.COMMIT:
            for stat in state.commit_metadata(instant).write_stats():
                group = (stat.partition_path or "", stat.file_id)
                if stat.path and group in newest and is_later(instant.requested_time, newest[group]):
                    yield stat.path


def _newest_bases(paths: Iterable[str]) -> dict[tuple[str, str | None], str]:
    newest: dict[tuple[str, str | None], str] = {}
    for path in paths:
        partition, _, name = path.rpartition("/")
        if is_base_file_name(name):
            base = parse_base_file(partition, name)
            group = (partition, base.file_id)
            newest[group] = latest((base.instant_time, newest.get(group, "")))
        elif is_log_file_name(name):
            newest.setdefault((partition, parse_log_file(partition, name).file_id), "")
    return newest
