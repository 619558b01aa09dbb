"""Checks for record keys that are stored more than once. Unreadable files are findings of the full read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import LakehouseError, MissingFileError, UnsupportedTableError, UnsupportedTypeError
from lakehouse_engine.files.base_file import read_base_file
from lakehouse_engine.files.slice_reader import BaseRowsBy, SliceReader
from lakehouse_engine.index.choice import is_global_type, stored_index_type
from lakehouse_engine.model.files import BaseFile, FileSlice
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY, FileGroupId
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.complete_slices import METADATA_BOOTSTRAP_INSTANT
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.verify.report import Finding, FindingKind
from lakehouse_engine.view.table_state import TableState

_NAMED_KEYS = 3


def check_keys(state: TableState, slices: list[FileSlice]) -> tuple[int, list[Finding], tuple[str, ...]]:
    """Rows read, unreadable files, duplicate keys, and what was not checked."""
    if not state.config.populates_meta_fields:
        return 0, [], ("keys: the table has no meta columns (hoodie.populate.meta.fields=false)",)
    bootstrapped = [one for one in slices if one.base_file is not None and one.base_file.instant_time == METADATA_BOOTSTRAP_INSTANT]
    skipped = ["keys of bootstrapped files, whose rows are outside of the table"] if bootstrapped else []
    merged, reason = _logged_slices(state, slices)
    skipped += [reason] if reason else []
    rows, findings = 0, []
    for tables, broken in _keys_by_scope(state, [piece for piece in slices if piece not in bootstrapped], merged):
        findings += broken
        if tables:
            together = pa.concat_tables(tables)
            rows += together.num_rows
            findings += _duplicates(together)
    return rows, findings, tuple(skipped)


@dataclass(frozen=True, slots=True)
class _Merged:
    """How slices with logs are read."""

    reader: SliceReader
    pieces: dict[FileGroupId, LoggedSlice]


def _logged_slices(state: TableState, slices: list[FileSlice]) -> tuple[_Merged | None, str | None]:
    """How keys of slices with logs are read; or the reason why they cannot be."""
    if not any(piece.log_files for piece in slices):
        return None, None
    try:
        plan = plan_snapshot(state)
    except (UnsupportedTableError, UnsupportedTypeError) as error:
        return None, f"keys in log files: {error.message}"
    if plan.reader is None:
        return None, None
    # Two keys for which logs name one base row are found by reading them.
    reader = replace(plan.reader, base_rows=BaseRowsBy.CHECKED_POSITIONS)
    return _Merged(reader, {one.slice.group: one for one in plan.logged}), None


def _keys_by_scope(
    state: TableState, slices: list[FileSlice], merged: _Merged | None
) -> Iterator[tuple[list[pa.Table], list[Finding]]]:
    """Key columns of the slices within which a key must be unique: all under a global index, else those of one partition."""
    # Another writer's table does not say; Hudi's rule is uniqueness within a partition.
    if is_global_type(stored_index_type(state.config)):
        yield _read_keys(state, slices, merged)
        return
    for partition in dict.fromkeys(piece.partition_path for piece in slices):
        yield _read_keys(state, [piece for piece in slices if piece.partition_path == partition], merged)


def _read_keys(state: TableState, slices: list[FileSlice], merged: _Merged | None) -> tuple[list[pa.Table], list[Finding]]:
    read = [found for piece in slices if (found := _read_slice_keys(state, piece, merged)) is not None]
    return [keys for keys in read if isinstance(keys, pa.Table)], [finding for finding in read if isinstance(finding, Finding)]


def _read_slice_keys(state: TableState, piece: FileSlice, merged: _Merged | None) -> pa.Table | Finding | None:
    logged = merged.pieces.get(piece.group) if merged is not None else None
    if merged is None or logged is None:
        return None if piece.base_file is None else _read_file_keys(state, piece.base_file)
    try:
        keys = merged.reader.read(logged, [RECORD_KEY])
    except LakehouseError as error:
        return Finding(FindingKind.UNREADABLE_FILE, error.context.get("path", piece.partition_path), error.message)
    return _with_partition(keys, piece.partition_path)


def _read_file_keys(state: TableState, file: BaseFile) -> pa.Table | Finding:
    try:
        # An empty schema: the key is a meta column, and other columns do not matter.
        keys = read_base_file(state.storage, file, pa.schema([]), columns=[RECORD_KEY])
    except MissingFileError:
        return Finding(FindingKind.MISSING_FILE, file.path, "was there a moment ago, and is gone")
    except LakehouseError as error:
        return Finding(FindingKind.UNREADABLE_FILE, file.path, error.message)
    return _with_partition(keys, file.partition_path)


def _with_partition(keys: pa.Table, path: str) -> pa.Table:
    partition = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), keys.num_rows), [path])
    return keys.append_column(PARTITION_PATH, partition)


def _duplicates(keys: pa.Table) -> list[Finding]:
    """One finding for each partition with a key that is stored more than once."""
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
