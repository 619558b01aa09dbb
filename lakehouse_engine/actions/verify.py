"""Whether a table is whole: its timeline parses, its files are there as recorded, no record key is stored twice. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import FormatError, LakehouseError, MissingFileError, StoredFileNotFoundError
from lakehouse_engine.format.file_names import is_log_file_name, parse_log_file
from lakehouse_engine.format.metadata_avro import decode_record
from lakehouse_engine.index.simple import stored_index_type
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY, FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.read.base_file import read_base_file
from lakehouse_engine.read.completeness import lost_files
from lakehouse_engine.read.scan import METADATA_BOOTSTRAP_INSTANT
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.view.table_state import TableState

_RECORDS = {
    Action.CLEAN: "HoodieCleanMetadata",
    Action.ROLLBACK: "HoodieRollbackMetadata",
    Action.SAVEPOINT: "HoodieSavepointMetadata",
    Action.RESTORE: "HoodieRestoreMetadata",
}
_NAMED_KEYS = 3


class FindingKind(StrEnum):
    CORRUPT_INSTANT = "corrupt_instant"
    MISSING_FILE = "missing_file"
    WRONG_SIZE = "wrong_size"
    UNREADABLE_FILE = "unreadable_file"
    DUPLICATE_KEY = "duplicate_key"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `path` is a file relative to the table, a partition path for duplicate keys."""

    kind: FindingKind
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What was looked at, and what is wrong with it. `instant` is the newest completed write, None where there is none.

    `skipped` says what could not be checked, and why. Rows are those of base files.
    """

    table: str
    instant: str | None
    instants: int
    files: int
    bytes: int
    rows: int
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings


def verify(state: TableState) -> VerifyReport:
    """Check a table as of `state`. What is wrong becomes a finding, never an exception.

    Key columns are read file by file and compared partition by partition, or over the whole table where the index is global. Raises
    only what opening the storage raises.
    """
    corrupt = list(_corrupt_instants(state))
    if corrupt:
        # Without its commits the table cannot be told from its leftovers, and further findings would be guesses.
        return _report(state, [], corrupt, 0, ("files and keys: the timeline does not parse",))
    slices = state.view.latest_slices()
    findings = [*_missing(state, slices), *_wrong_sizes(state, slices)]
    rows, found, skipped = _check_keys(state, slices)
    return _report(state, slices, [*findings, *found], rows, skipped)


def _report(
    state: TableState, slices: list[FileSlice], findings: list[Finding], rows: int, skipped: tuple[str, ...]
) -> VerifyReport:
    last = state.timeline.completed().writes().last()
    return VerifyReport(
        table=state.config.name,
        instant=last.requested_time if last else None,
        instants=len(state.timeline),
        files=sum((piece.base_file is not None) + len(piece.log_files) for piece in slices),
        bytes=sum(piece.size for piece in slices),
        rows=rows,
        findings=tuple(findings),
        skipped=skipped,
    )


def _corrupt_instants(state: TableState) -> Iterator[Finding]:
    for instant in state.timeline.completed():
        message = _damage(state, instant)
        if message is not None:
            path = f"{state.layout.timeline_folder}/{state.layout.file_name(instant)}"
            yield Finding(FindingKind.CORRUPT_INSTANT, path, message)


def _damage(state: TableState, instant: Instant) -> str | None:
    try:
        _decode(state, instant)
    except (FormatError, StoredFileNotFoundError) as error:
        return error.message
    return None


def _decode(state: TableState, instant: Instant) -> None:
    if instant.action.is_write:
        state.commit_metadata(instant)
    elif instant.action in _RECORDS:
        decode_record(_RECORDS[instant.action], ActiveTimeline(state.storage, state.layout).read(instant))


def _missing(state: TableState, slices: list[FileSlice]) -> Iterator[Finding]:
    for file in lost_files(state, None, slices):
        yield Finding(FindingKind.MISSING_FILE, file.path, f"written by {file.instant_time or 'an earlier commit'} and not there")
    listed = {log.path for piece in slices for log in piece.log_files}
    live = {(piece.group, piece.base_instant) for piece in slices}
    for log in _recorded_logs(state):
        if (FileGroupId(log.partition_path, log.file_id), log.base_instant) in live and log.path not in listed:
            yield Finding(FindingKind.MISSING_FILE, log.path, "a log of a live file slice, and not there")


def _recorded_logs(state: TableState) -> Iterator[LogFile]:
    for stat in _write_stats(state):
        partition, _, name = (stat.path or "").rpartition("/")
        if is_log_file_name(name) and not (log := parse_log_file(partition, name)).is_cdc:
            yield log


def _write_stats(state: TableState) -> Iterator[HoodieWriteStat]:
    for instant in state.timeline.completed().writes():
        yield from state.commit_metadata(instant).write_stats()


def _wrong_sizes(state: TableState, slices: list[FileSlice]) -> Iterator[Finding]:
    recorded = _recorded_sizes(state)
    for base in _base_files(slices):
        size = recorded.get(base.path, base.size)
        if size != base.size:
            yield Finding(FindingKind.WRONG_SIZE, base.path, f"has {base.size} bytes; its commit recorded {size}")


def _recorded_sizes(state: TableState) -> dict[str, int]:
    """Sizes by path, where a commit of the active timeline recorded one (Hudi leaves 0 where it did not look)."""
    return {stat.path: stat.file_size_in_bytes for stat in _write_stats(state) if stat.path and stat.file_size_in_bytes > 0}


def _base_files(slices: Iterable[FileSlice]) -> list[BaseFile]:
    return [piece.base_file for piece in slices if piece.base_file is not None]


def _check_keys(state: TableState, slices: list[FileSlice]) -> tuple[int, list[Finding], tuple[str, ...]]:
    """Rows read, files that cannot be read and keys that are there twice, and what was not checked."""
    if not state.config.populates_meta_fields:
        return 0, [], ("keys: the table has no meta columns (hoodie.populate.meta.fields=false)",)
    files = _base_files(slices)
    bootstrapped = [file for file in files if file.instant_time == METADATA_BOOTSTRAP_INSTANT]
    skipped = ["keys of bootstrapped files, whose rows are outside of the table"] if bootstrapped else []
    if any(piece.log_files for piece in slices):
        skipped.append("keys in log files")
    rows, findings = 0, []
    for tables, broken in _keys_by_scope(state, [file for file in files if file not in bootstrapped]):
        findings += broken
        if tables:
            together = pa.concat_tables(tables)
            rows += together.num_rows
            findings += _duplicates(together)
    return rows, findings, tuple(skipped)


def _keys_by_scope(state: TableState, files: list[BaseFile]) -> Iterator[tuple[list[pa.Table], list[Finding]]]:
    """Key columns of the files within which a key must be unique: all of them under a global index, else those of a partition."""
    # Another writer's table does not say, and has Hudi's rule that a key is unique in its partition.
    if stored_index_type(state.config).startswith("GLOBAL"):
        yield _read_keys(state, files)
        return
    for partition in dict.fromkeys(file.partition_path for file in files):
        yield _read_keys(state, [file for file in files if file.partition_path == partition])


def _read_keys(state: TableState, files: list[BaseFile]) -> tuple[list[pa.Table], list[Finding]]:
    read = [_read_file_keys(state, file) for file in files]
    return [keys for keys in read if isinstance(keys, pa.Table)], [finding for finding in read if isinstance(finding, Finding)]


def _read_file_keys(state: TableState, file: BaseFile) -> pa.Table | Finding:
    try:
        # An empty schema: the key is a meta column, and what else is in the file does not matter here.
        keys = read_base_file(state.storage, file, pa.schema([]), columns=[RECORD_KEY])
    except MissingFileError:
        return Finding(FindingKind.MISSING_FILE, file.path, "was there a moment ago, and is gone")
    except LakehouseError as error:
        return Finding(FindingKind.UNREADABLE_FILE, file.path, error.message)
    partition = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), keys.num_rows), [file.partition_path])
    return keys.append_column(PARTITION_PATH, partition)


def _duplicates(keys: pa.Table) -> list[Finding]:
    """One finding for each partition that holds a key which is stored more than once."""
    counted = keys.group_by(RECORD_KEY).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted["count_all"], 1))[RECORD_KEY]
    if not len(repeated):
        return []
    places = keys.filter(pc.is_in(keys[RECORD_KEY], value_set=repeated.combine_chunks()))
    return [_duplicate(places, path) for path in pc.unique(places[PARTITION_PATH].cast(pa.string())).to_pylist()]


def _duplicate(places: pa.Table, partition: str) -> Finding:
    here = pc.unique(places.filter(pc.equal(places[PARTITION_PATH].cast(pa.string()), partition))[RECORD_KEY])
    named = ", ".join(map(repr, here.slice(0, _NAMED_KEYS).to_pylist()))
    more = f" and {len(here) - _NAMED_KEYS} more" if len(here) > _NAMED_KEYS else ""
    return Finding(FindingKind.DUPLICATE_KEY, partition, f"record keys that are stored more than once: {named}{more}")
