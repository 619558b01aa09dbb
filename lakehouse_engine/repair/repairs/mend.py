"""Decides what happens to a damaged metadata file (docs/adr/0019). The first rule that applies:

 1. its content follows from other complete data: it is made again
 2. nothing depends on it: it is set aside; a service that was only planned, or a finished clean or rollback, goes with all its files
 3. it protects or proves something that nothing else does: it stays, and the message names the way out

Whatever is replaced or removed is set aside first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakehouse_engine.commit.checkpoint import renew_checkpoint
from lakehouse_engine.commit.leftovers.savepoints import lost_savepoints, put_back_savepoint
from lakehouse_engine.errors import FormatError, LakehouseError, MetadataError, StoredFileNotFoundError
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.v6.archived import archive_links, render_archive, salvage_archive
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.options.services import ARCHIVAL_BATCH
from lakehouse_engine.repair.damage import DamagedState, damaged_states, lost_files_of_commits
from lakehouse_engine.repair.repairs.aside import FOLDER, set_aside
from lakehouse_engine.repair.repairs.history_head import history_head
from lakehouse_engine.repair.repairs.lost_plans import lost_compaction_plans
from lakehouse_engine.repair.repairs.metafiles import damaged_metafiles
from lakehouse_engine.repair.repairs.properties import unfinished_properties
from lakehouse_engine.repair.repairs.rebuild import noted, rebuilt
from lakehouse_engine.repair.repairs.recommit import completion_of, recommitted
from lakehouse_engine.repair.repairs.remedy import Mending, mending
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.timeline.checkpoints import LIVE, SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.history import History, LsmHistory
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.timeline.lsm_writer import LsmWriter
from lakehouse_engine.verify.ways_out import earlier_moments
from lakehouse_engine.view.archive_gaps import A_PART, missed_files, with_lost
from lakehouse_engine.view.lost_commits import completed_path
from lakehouse_engine.view.table_state import TableState


def mendings(state: TableState, *, trust_files: bool = False) -> Iterator[Mending]:
    """Remedies for every damaged timeline file; does nothing yet.

    `trust_files`: the files of a completed write replace its damaged record.
    """
    for damage in damaged_states(state.active):
        is_commit = damage.instant.is_completed and damage.instant.action.is_write
        yield _commit_file(state, damage, trust_files) if is_commit else _state_file(state, damage)
    for instant, content in lost_savepoints(state).items():
        damage = DamagedState(instant, completed_path(state, instant), State.COMPLETED, "the completed file of the savepoint is gone")
        yield _put_back(state, damage, content)
    for damage in lost_files_of_commits(state):
        yield _commit_file(state, damage, trust_files)
    yield from _archive(state)
    yield from lost_compaction_plans(state)
    yield from _checkpoints(state)
    yield from damaged_metafiles(state)
    yield from unfinished_properties(state.storage)


def _archive(state: TableState) -> Iterator[Mending]:
    """First what says which files there must be: until that is whole nothing is told of them."""
    archive, head = state.archived_timeline, history_head(state)
    yield from _archive_files(state, archive) if head is None else (head,)
    if head is None:
        yield from _kept_commits(state, archive)


def _archive_files(state: TableState, archive: History) -> Iterator[Mending]:
    for file, error in archive.damaged():
        yield _archive_file(state, file, error)
    for name in missed_files(state):
        yield _lost_archive_file(state, name)


def unreadable_history(storage: Storage) -> Mending | None:
    """The damage of a history of version 8 or 9 that is seen to first: without the order of archived instants much cannot be asked."""
    state = TableState.load(storage)
    history, head = state.archived_timeline, history_head(state)
    if head is not None or not isinstance(history, LsmHistory):
        return head
    return next(_archive_files(state, history), None)


def _state_file(state: TableState, damage: DamagedState) -> Mending:
    instant = damage.instant
    record = rebuilt(state, instant)
    if record is not None:
        return _made_anew(state.storage, damage, encode_plan(record, note=noted(state, instant)), "it is made anew")
    reason = _stays(state, damage)
    if reason is not None:
        return mending(damage.path, f"{damage.message}: {reason}", None)
    if _is_history(damage):
        message = f"{damage.message}: nothing rests on it, and it is set aside in {FOLDER}"
        return mending(damage.path, message, lambda: _drop(state, [instant]))
    states = _all_states(instant)
    message = f"{damage.message}: the {instant.action} {_what_is_lost(damage)}; its files are set aside in {FOLDER}"
    return mending(damage.path, message, lambda: _drop(state, states))


def _put_back(state: TableState, damage: DamagedState, content: bytes) -> Mending:
    message = f"{damage.message}: it is put back from the copy in the inflight file"
    return mending(damage.path, message, lambda: put_back_savepoint(state, damage.instant, content))


def _made_anew(storage: Storage, damage: DamagedState, content: bytes, how: str) -> Mending:
    def replace() -> None:
        if storage.head(damage.path) is not None:
            set_aside(storage, damage.path)
        storage.overwrite(damage.path, content)

    return mending(damage.path, f"{damage.message}: {how}, and the damaged one set aside in {FOLDER}", replace)


def _commit_file(state: TableState, damage: DamagedState, trust_files: bool) -> Mending:
    """The record of a completed write: nothing proves that the existing files are all that it wrote."""
    try:
        record = recommitted(state, damage.instant)
        instant = replace(damage.instant, completed_at=completion_of(state, damage.instant))
    except LakehouseError as error:
        ways = ["put the file back from a backup", *earlier_moments(state, damage.instant.requested_time)]
        return mending(damage.path, f"{damage.message}: what it wrote cannot be told ({error.message}); {', or '.join(ways)}", None)
    files = sum(len(stats) for stats in record.partition_to_write_stats.values())
    if trust_files:
        content, how = state.format.encode_commit(record), f"it is made anew of the {files} files that it wrote"
        return _made_anew(state.storage, replace(damage, path=completed_path(state, instant)), content, how)
    ways = [
        "put the file back from a backup",
        f"`repair --trust-files` makes it anew of the {files} files that carry its instant (that no other is lost cannot be proven)",
        *earlier_moments(state, damage.instant.requested_time),
    ]
    return mending(damage.path, f"{damage.message}: {', or '.join(ways)}", None)


def _stays(state: TableState, damage: DamagedState) -> str | None:
    """Why a file that cannot be made again has to stay, and the way out."""
    time, action = damage.instant.requested_time, damage.instant.action
    if action is Action.SAVEPOINT:
        return f"what it keeps cannot be proven, so nothing as old as it is deleted; `savepoint delete {time}` gives it up"
    if action is Action.RESTORE and damage.reached is not State.REQUESTED and damage.instant.state is not State.INFLIGHT:
        return "what the restore took back cannot be told; put the file back from a backup"
    return None


def _what_is_lost(damage: DamagedState) -> str:
    if damage.reached is not State.COMPLETED:
        return "was planned only"
    if damage.instant.action is Action.ROLLBACK:
        return "is done, and what it took back is not told any more: whoever reads increments from before it has to read the table anew"
    return "is done, and nothing rests on its record"


def _is_history(damage: DamagedState) -> bool:
    """True if the file matters: for completed instants only the completed file, for others a plan that is stored elsewhere does not."""
    if damage.instant.state is State.COMPLETED:
        return False
    return damage.reached is State.COMPLETED or damage.instant.state is State.INFLIGHT


def _all_states(instant: Instant) -> list[Instant]:
    """The completed file goes last: without it, the others would be a pending instant for a moment."""
    return [instant.at(state) for state in (State.INFLIGHT, State.REQUESTED, State.COMPLETED)]


def _drop(state: TableState, instants: list[Instant]) -> None:
    for instant in instants:
        known = state.active.find_completed(instant) if instant.is_completed else instant
        path = None if known is None else state.active.path(known)
        if path is not None and state.storage.head(path) is not None:
            set_aside(state.storage, path)
            state.storage.delete(path)
    state.storage.sync(state.format.timeline_folder)


def _archive_file(state: TableState, file: StoredFile, error: FormatError) -> Mending:
    archive = state.archived_timeline
    # A history file of version 8 or 9 has one Parquet page per column, so no part of it is whole.
    entries = [] if isinstance(archive, LsmHistory) else salvage_archive(state.storage.read(file.path))

    def replace() -> None:
        if not state.archived_files().is_known:
            # The damaged part's content is lost: from here on, the existing files are those that must exist.
            renew_checkpoint(state)
        set_aside(state.storage, file.path)
        # Recorded before the file looks whole: an unknown write_id may have been in it.
        ConfigStore(state.storage).update(with_lost(state, f"{file.name}{A_PART}" if entries else file.name))
        if isinstance(archive, LsmHistory):
            LsmWriter(archive).drop(file.name)
        elif entries:
            after = archive_links(read_blocks(state.storage.read(file.path))).after
            state.storage.overwrite(file.path, render_archive(_by_instant(entries), ARCHIVAL_BATCH.default, after=after))
        else:
            state.storage.delete(file.path)

    kept = len(entries)
    message = f"{error.message}: {kept} entries are whole and stay; the damaged file is set aside in {FOLDER}, and noted in the table"
    return mending(file.path, message, replace)


def _lost_archive_file(state: TableState, name: str) -> Mending:
    archive = state.archived_timeline
    message = (
        "the archive file is gone: that is noted in the table. Writes with a write_id that is not found are refused until the file is put"
        " back from a backup, or until `repair --accept-lost-archive`"
    )

    def note() -> None:
        if not state.archived_files().is_known:
            renew_checkpoint(state)
        ConfigStore(state.storage).update(with_lost(state, name))
        if isinstance(archive, LsmHistory):
            LsmWriter(archive).drop(name)

    return mending(f"{archive.path}/{name}", message, note)


def _by_instant(entries: list[ArchivedEntry]) -> list[list[ArchivedEntry]]:
    grouped: dict[tuple[str, Action], list[ArchivedEntry]] = {}
    for entry in entries:
        grouped.setdefault((entry.instant.requested_time, entry.instant.action.completes_as), []).append(entry)
    return list(grouped.values())


def _checkpoints(state: TableState) -> Iterator[Mending]:
    """Damaged checkpoints of live files: the table's, which is written again afterwards, and savepoints'."""
    for folder, what in (
        (LIVE, "it is set aside, and the checkpoint written anew"),
        (SAVEPOINTED, "it is set aside; the savepoint is read without it, and the sizes of its files are not compared"),
    ):
        checkpoints = LiveCheckpoints(state.storage, folder)
        for time in checkpoints.times():
            path, wrong = checkpoints.path(time), _wrong_with(checkpoints, time)
            if wrong is not None:
                yield mending(path, f"{wrong}: {what}", lambda path=path: _remove(state.storage, path))  # type: ignore[misc]


def _wrong_with(checkpoints: LiveCheckpoints, time: str) -> str | None:
    try:
        checkpoints.read(time)
    except StoredFileNotFoundError:
        return None  # a newer one has replaced it
    except FormatError as error:
        return error.message
    return None


def _remove(storage: Storage, path: str) -> None:
    set_aside(storage, path)
    storage.delete(path)


def _kept_commits(state: TableState, archive: History) -> Iterator[Mending]:
    """Commits of archived savepoints: the archive has what a restore needs of them."""
    kept = KeptCommits(state.storage, state.format)
    active = {write.requested_time for write in state.timeline.completed().writes()}
    for time in state.order.sorted(state.timeline.savepointed - active):
        path, message = f"{kept.folder}/{time}.*", "the commit of a savepoint is not kept aside"
        found = kept.find(time)
        try:
            if found is not None and kept.metadata(time) is not None:
                continue
        except MetadataError as error:
            path, message = error.context["path"], error.message
        yield _kept_commit(state, archive, time, path, message)


def _kept_commit(state: TableState, archive: History, time: str, path: str, message: str) -> Mending:
    found = archive.commit_of(time)
    if found is None:
        way = f"put the file back from a backup, or `savepoint delete {time}`"
        return mending(path, f"{message}, and the archive does not have it either: {way}", None)
    instant, content = found

    def replace() -> None:
        target = f"{KeptCommits(state.storage, state.format).folder}/{state.format.file_name(instant)}"
        if state.storage.head(target) is not None:
            set_aside(state.storage, target)
        state.storage.overwrite(target, content)

    return mending(path, f"{message}: it is made anew from the archive", replace)
