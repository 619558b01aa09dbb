"""Savepoints: a completed write whose files stay until the savepoint is deleted (hudi-format 10.1; Hudi `SavepointActionExecutor`).

 1. under the table lock, finds the slices of the table as of the instant, and checks that every file is listed
 2. writes `<instant>.savepoint.inflight`, then `<instant>.savepoint` with the names of the files: from here on they are pinned
 3. writes the same content to the inflight file, so that the savepoint can be missed and put back if its completed file is deleted
    (`commit.leftovers.savepoints`)

A crash before completion leaves an empty inflight file, which is not a savepoint: creating or deleting the next savepoint removes it.
Deletion removes the inflight file first, so that removing the completed file is the step that decides.
"""

from __future__ import annotations

import getpass
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

from lakehouse_engine.commit.completing import complete
from lakehouse_engine.commit.leftovers.log_owners import log_owners
from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.rollback.markers import marked_files
from lakehouse_engine.errors import InstantNotFoundError, SavepointError, StorageError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.files import FileSlice, LogFile, join_path
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.logged import LogPromise, ToldLogs
from lakehouse_engine.model.savepoint import (
    LATEST,
    DamagedSavepoint,
    HoodieSavepointMetadata,
    HoodieSavepointPartitionMetadata,
    check_name,
    join_comments,
)
from lakehouse_engine.model.services import Savepoint
from lakehouse_engine.read.complete_slices import complete_slices
from lakehouse_engine.services.archive.passed import archive_passed, check_passed
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.protected import damaged_savepoints, savepoint_metadata
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def create_savepoint(
    storage: Storage,
    *,
    instant: str | None = None,
    name: str | None = None,
    comment: str = "",
    user: str | None = None,
    lock_timeout_ms: int,
    dry_run: bool = False,
) -> Savepoint:
    """Pin the table as of a completed write (None: the newest). `user` None is the user of this process.

    Returns the existing savepoint of that write if no name is given, or its own. A dry run says what would be pinned, and changes nothing.
    Raises `SavepointError` for an invalid name or one already taken, for a table without commits, and for a write that has a savepoint of
    another name; `InstantNotFoundError` if the instant is not a completed write of the active timeline; `InstantCleanedError` if files as
    of it were cleaned, and `MissingFileError` if one is lost.
    """
    if name is not None:
        check_name(name)
    if dry_run:
        return _planned(TableState.load(storage), instant, name, comment, user)[0]
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms) as state:
        savepoint, metadata = _planned(state, instant, name, comment, user)
        timeline = state.active
        _remove_begun(state, timeline)
        if metadata is not None:
            inflight = timeline.to_inflight(Instant(savepoint.instant, Action.SAVEPOINT, State.REQUESTED))
            complete(state, inflight, metadata)
            _keep_copy(state, timeline, inflight, encode_plan(metadata))
        return savepoint


def _keep_copy(state: TableState, timeline: ActiveTimeline, inflight: Instant, content: bytes) -> None:
    """Copy the savepoint to its inflight file. Not in an object store: a copy delayed until after a deletion would restore the savepoint.
    """
    if in_object_store(state.storage):
        return
    try:
        timeline.copy_to_inflight(inflight, content)
    except StorageError as error:
        logger.warning("the savepoint %s of %s has no copy: %s", inflight.requested_time, state.config.name, error)


def delete_savepoint(storage: Storage, savepoint: str, *, lock_timeout_ms: int, dry_run: bool = False) -> Savepoint:
    """Delete a savepoint by name or instant ("latest": the newest); the next clean may delete what only it pinned.

    The instant may also be that of a savepoint that was begun and not completed. A dry run says what would be deleted, and changes nothing.
    Raises `SavepointError` if there is no such savepoint, naming the existing ones, and if commits after it are archived and it replaced
    files that another savepoint still pins.
    """
    if dry_run:
        return _deletable(TableState.load(storage), savepoint)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms) as state:
        timeline = state.active
        begun = _begun(state)
        found = _deletable(state, savepoint)
        _remove_begun(state, timeline)
        if found.instant not in begun:
            archive_passed(state, found.instant)
            timeline.delete_savepoint(found.instant)
        return found


def _deletable(state: TableState, savepoint: str) -> Savepoint:
    if savepoint in _begun(state):
        return _described(state, {savepoint: HoodieSavepointMetadata(savepointed_by="", savepointed_at=0, comments="")})[0]
    found = find_savepoint(state, savepoint, savepoint_metadata(state))
    check_passed(state, found.instant)
    return found


def list_savepoints(state: TableState) -> list[Savepoint]:
    """Every completed savepoint, oldest first. `bytes` is the size of the pinned files that exist."""
    return _described(state, savepoint_metadata(state))


def find_savepoint(state: TableState, name_or_instant: str, known: Mapping[str, HoodieSavepointMetadata]) -> Savepoint:
    """Savepoint with that name or instant; "latest" is the newest. `known`: result of `savepoint_metadata` for this state.

    Raises `SavepointError` naming the existing ones.
    """
    if name_or_instant == LATEST:
        chosen = state.order.sorted(known)[-1:]
    else:
        chosen = [time for time, metadata in known.items() if name_or_instant in (time, metadata.name)]
    if not chosen:
        named = ", ".join(f"{metadata.name} ({time})" if metadata.name else time for time, metadata in known.items()) or "none"
        damaged = [f"{time} ({path} is damaged)" for time, path in damaged_savepoints(state).items()]
        hint = f"; names that are not known: {', '.join(damaged)}" if damaged else ""
        raise SavepointError(f"there is no savepoint {name_or_instant!r}; savepoints of this table: {named}{hint}", table=state.config.name)
    return _described(state, {chosen[0]: known[chosen[0]]})[0]


def _planned(
    state: TableState, instant: str | None, name: str | None, comment: str, user: str | None
) -> tuple[Savepoint, HoodieSavepointMetadata | None]:
    """The savepoint, and the record to write; None if it exists already."""
    target = _target(state, instant)
    known = savepoint_metadata(state)
    existing = known.get(target)
    if isinstance(existing, DamagedSavepoint):
        raise SavepointError(
            f"{target} has a savepoint already, and it is damaged: `repair` makes it anew, or delete it first ({existing.comments})",
            instant=target,
            table=state.config.name,
        )
    if existing is not None:
        if name is not None and name != existing.name:
            raise SavepointError(
                f"{target} has a savepoint already, named {existing.name!r}; delete it first to name it {name!r}",
                instant=target,
                table=state.config.name,
            )
        return _described(state, {target: existing})[0], None
    taken = next((time for time, metadata in known.items() if name is not None and metadata.name == name), None)
    if taken is not None:
        raise SavepointError(f"the savepoint of {taken} has the name {name!r} already", instant=taken, table=state.config.name)
    metadata = HoodieSavepointMetadata(
        savepointed_by=user if user is not None else current_user(),
        savepointed_at=int(time.time() * 1000),
        comments=join_comments(name, comment),
        partition_metadata=pins(state, target, complete_slices(state, state.order.moment(target))),
    )
    return _described(state, {target: metadata})[0], metadata


def current_user() -> str:
    """The user of this process, as a savepoint records it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"  # in a container, the user id may have no name


def _target(state: TableState, instant: str | None) -> str:
    completed = state.timeline.completed().writes()
    if instant is None:
        last = completed.last()
        if last is None:
            raise SavepointError("the table has no completed write to keep", table=state.config.name)
        return last.requested_time
    if not completed.contains(instant):
        first = completed.first()
        raise InstantNotFoundError(
            f"{instant} is no completed write of the active timeline, which begins with {first.requested_time if first else 'nothing'}",
            instant=instant,
            table=state.config.name,
        )
    return instant


def pins(state: TableState, instant_time: str, slices: Iterable[FileSlice]) -> dict[str, HoodieSavepointPartitionMetadata]:
    """Files that a savepoint of that instant pins, by partition; `slices` are the table as of it."""
    names: dict[str, list[str]] = {}
    moment, unpublished = state.order.moment(instant_time), _unpublished(state)
    promises, told = _promises(state, moment), state.manifest.told(moment)
    for piece in slices:
        logs = [log for log in piece.log_files if not _is_dead(state, log, unpublished.get(log.path))]
        pinned = [log.name for log in logs if _is_pinned(state, log, promises.get(log.path, ()), moment, told)]
        base = [piece.base_file.name] if piece.base_file is not None else []
        names.setdefault(piece.partition_path, []).extend(base + pinned)
    return {
        partition: HoodieSavepointPartitionMetadata(partition_path=partition, savepoint_data_file=tuple(files))
        for partition, files in names.items()
        if files
    }


def _unpublished(state: TableState) -> dict[str, str]:
    """Log files made by a log compaction that is not completed: its time by path."""
    pending = [instant.requested_time for instant in state.timeline.pending() if instant.action is Action.LOG_COMPACTION]
    return {path: time for time in pending for path in marked_files(state.storage, time)}


def _is_dead(state: TableState, log: LogFile, compaction: str | None) -> bool:
    """True if only a log compaction that died wrote the log file: it has no rows of the table, and the next run must delete it."""
    return compaction is not None and log_owners(state.storage, log).only(compaction)


def _is_pinned(state: TableState, log: LogFile, promises: Sequence[LogPromise], moment: str, told: ToldLogs) -> bool:
    """True if the log file has data of the table as of the moment. Hudi also pins what later writes logged to the same slices.

    `told`: writes whose files are all known as of the moment. Any other block of such a write is a stray, which reads ignore; if pinned, it
    would come back with the savepoint once that knowledge is lost.
    """
    if any(state.order.is_visible(promise.instant_time, moment) for promise in promises):
        return True
    if any(promise.start == 0 for promise in promises):
        return False  # a later write began the file
    # The write that began it is archived or was rolled back: it may be newer, so only the file's blocks decide.
    owners = log_owners(state.storage, log)
    older = [writer for writer in owners.writers if state.order.is_visible(writer, moment)]
    return not owners.writers or bool(older and owners.takes_back) or any(log.is_cdc or not told.tells(writer) for writer in older)


def _promises(state: TableState, moment: str) -> dict[str, list[LogPromise]]:
    """Known writes to each log file, from the table now and as of the moment."""
    by_path: dict[str, list[LogPromise]] = {}
    for promises in (*state.manifest.promises(None).values(), *state.manifest.promises(moment).values()):
        for promise in promises:
            by_path.setdefault(promise.path, []).append(promise)
    return by_path


def _described(state: TableState, savepoints: Mapping[str, HoodieSavepointMetadata]) -> list[Savepoint]:
    sizes = _sizes(state.storage, {partition for metadata in savepoints.values() for partition in metadata.partition_metadata})
    return [_describe(time, metadata, sizes) for time, metadata in savepoints.items()]


def _sizes(storage: Storage, partitions: Iterable[str]) -> dict[str, int]:
    lister = StorageLister(storage)
    return {entry.path: entry.size for partition in sorted(partitions) for entry in lister.files(partition)}


def _describe(instant_time: str, metadata: HoodieSavepointMetadata, sizes: Mapping[str, int]) -> Savepoint:
    files = [join_path(partition, name) for partition, names in metadata.pinned_files().items() for name in names]
    return Savepoint(
        instant=instant_time,
        name=metadata.name,
        comment=metadata.comment,
        user=metadata.savepointed_by,
        created_at=metadata.savepointed_at,
        partitions=len(metadata.partition_metadata),
        files=len(files),
        bytes=sum(sizes.get(path, 0) for path in files),
    )


def _begun(state: TableState) -> Sequence[str]:
    """Times of incomplete savepoints."""
    return [instant.requested_time for instant in state.timeline.pending() if instant.action is Action.SAVEPOINT]


def _remove_begun(state: TableState, timeline: ActiveTimeline) -> None:
    for instant_time in _begun(state):
        timeline.delete_pending(Instant(instant_time, Action.SAVEPOINT, State.INFLIGHT))
