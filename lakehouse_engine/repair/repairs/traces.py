"""Traces of a write in data files: base files carry its instant in their names, log blocks in their headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from lakehouse_engine.errors import CorruptLogError, MetadataError
from lakehouse_engine.files.base_file import check_base_file, open_base_file
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.format.log.blocks import DATA_BLOCKS, BlockType, LogBlock
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.files import BaseFile, LogFile
from lakehouse_engine.model.keys import COMMIT_TIME, FileGroupId
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage, StoredFile
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.view.table_state import TableState

_SCHEMA = b"parquet.avro.schema"
_ROWS = DATA_BLOCKS | {BlockType.DELETE}


@dataclass(frozen=True, slots=True)
class Trace:
    """One file that the write made or appended to; `schema` is the Avro schema in it, None without one.

    `stat` is the commit's entry without what files cannot tell: the number of deleted rows, and the duration.
    """

    group: FileGroupId
    stat: HoodieWriteStat
    schema: str | None


def traces(state: TableState, instant_time: str, previous: Mapping[FileGroupId, str]) -> list[Trace]:
    """Every file of the write, read to its end; `previous` is each group's slice before the write.

    Raises `MetadataError` if it is unclear which files are the write's, `CorruptFileError` and `CorruptLogError` for a damaged one.
    """
    lister, found = StorageLister(state.storage), list[Trace]()
    for partition in state.view.partitions():
        files = lister.files(partition)
        bases = {(base.file_id, base.instant_time): base.name for file in files if (base := _base(partition, file)) is not None}
        for file in files:
            trace = _trace(state.storage, partition, file, instant_time, previous, bases)
            if trace is not None:
                found.append(trace)
    _check_no_attempts(found)
    return found


def _base(partition: str, file: StoredFile) -> BaseFile | None:
    return parse_base_file(partition, file.name, file.size) if is_base_file_name(file.name) else None


def _trace(
    storage: Storage,
    partition: str,
    file: StoredFile,
    instant_time: str,
    previous: Mapping[FileGroupId, str],
    bases: Mapping[tuple[str, str], str],
) -> Trace | None:
    base = _base(partition, file)
    if base is not None:
        return _of_base(storage, base, previous.get(FileGroupId(partition, base.file_id))) if base.instant_time == instant_time else None
    if not is_log_file_name(file.name):
        return None
    log = parse_log_file(partition, file.name, file.size)
    if log.is_cdc and log.instant_time == instant_time:
        raise MetadataError(f"the write logged changes to {log.path!r}, and what of them belongs to which file is not known", path=log.path)
    return None if log.is_cdc or is_later(log.instant_time, instant_time) else _of_log(storage, log, instant_time, bases)


def _of_base(storage: Storage, base: BaseFile, previous: str | None) -> Trace:
    footer = check_base_file(storage, base.path)
    own = _own_rows(storage, base)
    stat = HoodieWriteStat(
        file_id=base.file_id,
        path=base.path,
        prev_commit=previous or "null",
        num_writes=footer.num_rows,
        num_inserts=own if previous is None else 0,
        num_update_writes=0 if previous is None else own,
        total_write_bytes=base.size,
        partition_path=base.partition_path,
        file_size_in_bytes=base.size,
    )
    text = (footer.metadata or {}).get(_SCHEMA)
    return Trace(FileGroupId(base.partition_path, base.file_id), stat, None if text is None else text.decode("utf-8"))


def _own_rows(storage: Storage, base: BaseFile) -> int:
    """Rows that the write itself brought; all of them in a table without meta columns, where rows do not say."""
    with open_base_file(storage, base.path) as file:
        if COMMIT_TIME not in file.schema_arrow.names:
            return int(file.metadata.num_rows)
        own = pc.equal(file.read(columns=[COMMIT_TIME]).column(COMMIT_TIME), base.instant_time)
        return int(pc.sum(own).as_py() or 0)


def _of_log(storage: Storage, log: LogFile, instant_time: str, bases: Mapping[tuple[str, str], str]) -> Trace | None:
    blocks = list(read_blocks(mapped(storage, log.path)))
    # A damaged part without a known writer matters only beside blocks of the write; dead writers leave such parts elsewhere.
    own = [block for block in blocks if block.type in _ROWS and block.instant_time == instant_time]
    suspects = {instant_time, None} if own else {instant_time}
    torn = [block for block in blocks if block.type is BlockType.CORRUPT and block.instant_time in suspects]
    if torn:
        message = f"the log file {log.path!r} is damaged at {torn[0].offset}, where the write may have logged: {torn[0].damage}"
        raise CorruptLogError(message, path=log.path)
    if not own:
        return None
    rows = sum(map(_rows, own))
    stat = HoodieWriteStat(
        file_id=log.file_id,
        path=log.path,
        prev_commit=log.instant_time,
        num_writes=rows,
        num_update_writes=rows,
        total_write_bytes=sum(block.length for block in own),
        partition_path=log.partition_path,
        total_log_blocks=len(own),
        file_size_in_bytes=own[-1].end,
        log_version=log.version,
        log_offset=own[0].offset,
        base_file=bases.get((log.file_id, log.instant_time), ""),
        log_files=(log.name,),
    )
    schema = next((block.schema for block in own if block.type in DATA_BLOCKS and block.schema), None)
    return Trace(FileGroupId(log.partition_path, log.file_id), stat, schema)


def _rows(block: LogBlock) -> int:
    return decode_data_block(block, partial=True).num_rows if block.type in DATA_BLOCKS else 0


def _check_no_attempts(found: list[Trace]) -> None:
    """Raise if a group has two base files of the write: only its commit says which counts, the other is from a failed task attempt."""
    seen: dict[FileGroupId, str | None] = {}
    for trace in found:
        if trace.stat.log_files is None:
            if trace.group in seen:
                message = f"{seen[trace.group]!r} and {trace.stat.path!r} are of one file group: only one of them was committed"
                raise MetadataError(message, path=trace.stat.path)
            seen[trace.group] = trace.stat.path
