"""Metadata files: timeline, archive, kept commits, properties and partition metafiles all decode, and required ones exist.

hudi-format 2.2 says what each state file holds. Many requested and inflight files are empty, also after Hudi's own writer died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lakehouse_engine.commit.leftovers.savepoints import lost_savepoints
from lakehouse_engine.commit.leftovers.strays import stray_files
from lakehouse_engine.commit.leftovers.unpublished import all_dead_temporaries
from lakehouse_engine.errors import FormatError, LakehouseError, MetadataError, StoredFileNotFoundError
from lakehouse_engine.format.avro.avro_arrow import avro_to_arrow
from lakehouse_engine.format.file_names import PARTITION_METAFILE, is_base_file_name, is_log_file_name
from lakehouse_engine.format.partition_metafile import parse_partition_metafile
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.archived_record import archived_commit
from lakehouse_engine.format.v6.plans_codec import decode_plan
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.state_records import STATE_RECORDS
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.checkpoints import SAVEPOINTED, LiveCheckpoints
from lakehouse_engine.timeline.config_store import PROPERTIES, ConfigStore
from lakehouse_engine.timeline.history import History
from lakehouse_engine.timeline.kept import KeptCommits
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.view.archive_gaps import damaged_head, missed_files
from lakehouse_engine.view.completed_files import check_completed_once
from lakehouse_engine.view.lost_commits import completed_path, lost_commits
from lakehouse_engine.view.table_state import TableState

_NEVER_EMPTY = (Action.COMPACTION, Action.LOG_COMPACTION)
"""Actions whose plan is written with the request, and read until they complete."""


def check_timeline(state: TableState) -> Iterator[tuple[Instant, Finding]]:
    """What is wrong with state files of the active timeline, with the instant in that state."""
    for instant, file in _state_files(state, state.format.timeline_folder):
        finding = _check_state(state, instant, file)
        if finding is not None:
            yield instant, finding
    for instant in state.timeline:
        requested = needed_request(instant)
        if requested is not None:
            path = f"{state.format.timeline_folder}/{state.format.file_name(requested)}"
            if state.storage.head(path) is None:
                yield requested, Finding(FindingKind.MISSING_FILE, path, f"the plan of {instant} is not there")
    for again in state.completed_again:
        twice, error = state.format.parse_file_name(again.name), _error_of(check_completed_once, state, again)
        if twice is not None and error is not None:
            yield twice, Finding(FindingKind.CORRUPT_INSTANT, again.path, error.message)
    for savepoint in lost_savepoints(state):
        message = "the completed file of a savepoint is gone; the next change of the table, or `repair`, puts it back"
        yield savepoint, Finding(FindingKind.MISSING_FILE, completed_path(state, savepoint), message)
    for instant in lost_commits(state):
        message = "the completed file of a write is gone, and later changes rest on that write"
        yield instant, Finding(FindingKind.MISSING_FILE, completed_path(state, instant), message)


def needed_request(instant: Instant) -> Instant | None:
    """The requested file without which an instant cannot be finished, or a restore cannot be explained."""
    if instant.action is Action.SAVEPOINT or instant.state is State.REQUESTED:
        return None
    return instant.at(State.REQUESTED) if not instant.is_completed or instant.action is Action.RESTORE else None


def check_archive(state: TableState) -> Iterator[Finding]:
    """Archive files that do not decode. One file is in memory at a time."""
    archive, head = state.archived_timeline, damaged_head(state)
    if head is not None:
        yield Finding(FindingKind.CORRUPT_ARCHIVE, *head)
        return
    torn = archive.torn_name()
    for file in archive.files():
        # The inputs of an unfinished merge of archive files still exist.
        finding = None if file.name == torn else _check_archived(archive, file)
        if finding is not None:
            yield finding
    for name in missed_files(state):
        message = "the archive file is gone: what it said of earlier writes, and of their write_ids, is not known"
        yield Finding(FindingKind.CORRUPT_ARCHIVE, f"{archive.path}/{name}", message)


def _check_archived(archive: History, file: StoredFile) -> Finding | None:
    try:
        for entry in archive.entries_of([file]):
            archived_commit(entry)
    except StoredFileNotFoundError:
        return None  # merged into a newer file meanwhile
    except LakehouseError as error:
        return Finding.of(FindingKind.CORRUPT_ARCHIVE, file.path, error)
    return None


def check_checkpoints(state: TableState) -> Iterator[Finding]:
    """Incomplete checkpoints of live files. Reads work without them, but then read the archive."""
    for checkpoints in (LiveCheckpoints(state.storage), LiveCheckpoints(state.storage, SAVEPOINTED)):
        for time in checkpoints.times():
            error = _error_of(checkpoints.read, time)
            if error is not None and not isinstance(error, StoredFileNotFoundError):
                yield Finding(FindingKind.CORRUPT_CHECKPOINT, checkpoints.path(time), error.message)


def check_kept(state: TableState) -> Iterator[Finding]:
    """Commits that are kept for savepoints, and savepoints whose commit is missing."""
    kept = KeptCommits(state.storage, state.format)
    times = set()
    for instant, file in _state_files(state, kept.folder):
        times.add(instant.requested_time if instant.is_completed else "")
        finding = _check_state(state, instant, file)
        if finding is not None:
            yield finding
    active = {instant.requested_time for instant in state.timeline.completed().writes()}
    for time in state.order.sorted(state.timeline.savepointed - active - times):
        message = f"the commit of the savepoint {time} is archived, and not kept: the table cannot be restored to it"
        yield Finding(FindingKind.MISSING_FILE, kept.folder, message)


def check_properties(state: TableState) -> Iterator[Finding]:
    """Findings about the table's properties: incomplete, or with unusable values."""
    damage = ConfigStore(state.storage).damage()
    if damage is not None:
        yield Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, f"{damage.message}; the backup beside it is read in its place")
    names = [name for name, value in vars(TableConfig).items() if isinstance(value, property)]
    for error in filter(None, (_error_of(getattr, state.config, name) for name in names)):
        yield Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, error.message)
    text = state.config.create_schema
    wrong = _schema_error(text) if text else None
    if wrong is not None:
        yield Finding(FindingKind.CORRUPT_PROPERTIES, PROPERTIES, f"hoodie.table.create.schema cannot be used: {wrong.message}")


def check_metafiles(state: TableState) -> Iterator[Finding]:
    """Directories with data files but without a metafile, and metafiles that do not parse."""
    for folder, names in _folders(state).items():
        path = f"{folder}/{PARTITION_METAFILE}" if folder else PARTITION_METAFILE
        if any(name.startswith(f"{PARTITION_METAFILE}.") for name in names):
            continue  # in the base file format (hoodie.partition.metafile.use.base.format)
        if PARTITION_METAFILE not in names:
            message = f"{len(names)} data files are in a directory without it: Hudi sees no partition there"
            yield Finding(FindingKind.CORRUPT_METAFILE, path, message)
            continue
        wrong = _error_of(parse_partition_metafile, state.storage.read(path))
        if wrong is not None:
            yield Finding(FindingKind.CORRUPT_METAFILE, path, wrong.message)


def _error_of(check: Callable[..., object], *arguments: object) -> LakehouseError | None:
    try:
        check(*arguments)
    except LakehouseError as error:
        return error
    return None


def check_leftovers(state: TableState) -> Iterator[Finding]:
    """Temporary files of killed writers, which only take room, and files of late task attempts, which readers that ignore commits may take
    for data.
    """
    for path in stray_files(state, state.view.partitions()):
        message = "of a completed write, which does not name it: no part of the table; the next write there, or `repair`, removes it"
        yield Finding(FindingKind.LEFTOVER_FILE, path, message)
    for file in all_dead_temporaries(state.storage):
        yield Finding(FindingKind.LEFTOVER_FILE, file.path, f"{file.size} bytes that a killed process left; `repair` removes them")


def _folders(state: TableState) -> dict[str, list[str]]:
    """Names of metafiles and data files of every directory that has either."""
    found: dict[str, list[str]] = {}
    for file in state.storage.walk():
        folder, _, name = file.path.rpartition("/")
        is_meta = folder == ".hoodie" or folder.startswith(".hoodie/")
        if not is_meta and (name.startswith(PARTITION_METAFILE) or is_base_file_name(name) or is_log_file_name(name)):
            found.setdefault(folder, []).append(name)
    return found


def _state_files(state: TableState, folder: str) -> list[tuple[Instant, StoredFile]]:
    entries = ((state.format.parse_file_name(file.name), file) for file in state.storage.list(folder) if not file.is_directory)
    return [(instant, file) for instant, file in entries if instant is not None]


def _check_state(state: TableState, instant: Instant, file: StoredFile) -> Finding | None:
    try:
        decode_state(state.format, instant, state.storage.read(file.path))
    except StoredFileNotFoundError:
        return None  # archived or rolled back meanwhile
    except FormatError as error:
        return Finding(FindingKind.CORRUPT_INSTANT, file.path, error.message)
    return None


def decode_state(table_format: TableFormat, instant: Instant, data: bytes) -> None:
    """Raise `FormatError` if a state file's content should decode and does not."""
    action = instant.action
    if instant.is_completed and action.is_write:
        text = table_format.decode_commit(data).schema_json
        wrong = _schema_error(text) if text else None
        if wrong is not None:
            raise MetadataError(f"the schema in the commit cannot be used: {wrong.message}")
    elif instant.state is State.INFLIGHT and action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT):
        if data:
            table_format.decode_commit(data)
    else:
        kind = STATE_RECORDS.get((action, instant.state))
        if kind is not None and (data or instant.is_completed or action in _NEVER_EMPTY):
            decode_plan(kind, data)


def _schema_error(text: str) -> FormatError | None:
    """What is wrong with a schema's text. A type that the engine lacks is not damage."""
    try:
        avro_to_arrow(text, drop_meta=True)
    except FormatError as error:
        return error
    except LakehouseError:
        return None
    return None
