"""File groups of a metadata table's partitions as layers: the entries of the base file, then those of each log block.

A block counts if its delta commit is completed in the metadata table and not pending in the data table (Hudi 1.x,
`HoodieTableMetadataUtil.getValidInstantTimestamps`), its commit names its file, and no rollback block takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa

from lakehouse_engine.errors import CorruptLogError, FormatError, UnsupportedTableError
from lakehouse_engine.files.mapped import mapped
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.reader import HFileReader, InMemory, Source, open_hfile
from lakehouse_engine.format.log.blocks import BlockType, LogBlock
from lakehouse_engine.format.log.delete_block import decode_delete_block
from lakehouse_engine.format.log.hfile_block import open_hfile_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.metadata_table.merging import Layer
from lakehouse_engine.format.metadata_table.schema import SCHEMA_INFO
from lakehouse_engine.metadata_table.written import WAY_OUT, log_promises
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.logged import LogPromise
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.view.table_state import TableState

Select = Callable[[HFileReader], Cells]
"""Selects the wanted entries of an HFile."""
_NO_KEYS = pa.array([], pa.binary())


@dataclass(frozen=True, slots=True)
class RangedFile:
    """A stored file read in ranges on demand; a `Source` of an HFile."""

    storage: Storage
    path: str
    size: int
    identity: Hashable | None

    def read(self, offset: int, length: int) -> memoryview:
        with self.storage.open_input(self.path) as file, as_storage_errors("read", self.path, self.storage.root):
            file.seek(offset)
            return memoryview(file.read_buffer(length)).cast("B")  # Arrow's buffers have signed bytes


def source_of(storage: Storage, file: BaseFile) -> Source:
    """A base file, mapped if it is in a local file system. Raises `StoredFileNotFoundError`."""
    identity = identity_of(storage)
    known = None if identity is None else (identity, file.path, file.size)
    if storage.local_path(file.path) is not None:
        return InMemory(mapped(storage, file.path), known)
    return RangedFile(storage, file.path, file.size, known)


@dataclass(frozen=True, slots=True)
class Validity:
    """Decides which delta commits of a metadata table count, given the data table's timeline."""

    metadata: TableState
    pending: frozenset[str]
    completed: dict[str, Instant]
    promises: Callable[[], Mapping[str, list[LogPromise]]]
    """What delta commits wrote to log files, by path; read when it is first asked for."""

    @classmethod
    def of(cls, metadata: TableState, data: TableState) -> Validity:
        pending = frozenset(one.requested_time for one in data.timeline.pending())
        completed = {one.requested_time: one for one in metadata.timeline.completed().writes()}
        return cls(metadata, pending, completed, cache(partial(log_promises, metadata)))

    def counts(self, instant_time: str, log: LogFile) -> bool:
        """True if blocks of that instant in the log file count."""
        if instant_time in self.pending or not self.metadata.timeline.is_committed(instant_time):
            return False
        instant = self.completed.get(instant_time)
        names = None if instant is None else self.metadata.named_files(instant)
        return names is None or log.name in names


@dataclass(frozen=True, slots=True)
class LayerSource:
    """A base file or log block whose entries are read when they are selected; without a `reader`, `deleted` are the keys that it deletes.

    `damaged` makes the error for a damaged file.
    """

    reader: HFileReader | None
    schema: str
    deleted: pa.Array
    damaged: Callable[[FormatError], FormatError]

    def layer(self, select: Select) -> Layer:
        """The entries that `select` picks, or all deletions. Raises `FormatError` or `CorruptLogError`."""
        if self.reader is None:
            return Layer.deletion(self.deleted)
        with self.checked():
            return Layer(select(self.reader), self.schema)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Damage that is met in the body is that of this file."""
        try:
            yield
        except FormatError as error:
            raise self.damaged(error) from error


def layers_of(piece: FileSlice, validity: Validity, select: Select) -> list[Layer]:
    """Layers of a slice with the entries that `select` picks, and all deletions; the first is the base file's, empty without one.

    Raises as `sources_of` and `LayerSource.layer`.
    """
    return [source.layer(select) for source in sources_of(piece, validity)]


def sources_of(piece: FileSlice, validity: Validity) -> list[LayerSource]:
    """Where the layers of a slice come from, in order; the first is the base file, or deletes nothing if there is none.

    Raises `StoredFileNotFoundError`, and `FormatError` or `CorruptLogError` if a file is damaged.
    """
    storage = validity.metadata.storage
    base = piece.base_file
    sources = [_deletions(_NO_KEYS, _as_is) if base is None else _base_source(storage, base)]
    contents = [(log, mapped(storage, log.path)) for log in piece.log_files]
    blocks = [(log, block) for log, content in contents for block in read_blocks(content)]
    taken_back = {block.target_instant_time for _, block in blocks if block.is_rollback}
    for log, content in contents:
        _check_promises(log, content, [block for owner, block in blocks if owner is log], validity, taken_back)
    for log, block in blocks:
        instant_time = block.instant_time
        if block.type is BlockType.CORRUPT and (instant_time is None or instant_time not in taken_back):
            _check_damage(log, block, validity)
        elif instant_time is not None and instant_time not in taken_back and validity.counts(instant_time, log):
            sources += _block_sources(log, block)
    return sources


def _as_is(error: FormatError) -> FormatError:
    return error


def _deletions(keys: pa.Array, damaged: Callable[[FormatError], FormatError]) -> LayerSource:
    return LayerSource(None, "", keys, damaged)


def _base_source(storage: Storage, file: BaseFile) -> LayerSource:
    def damaged(error: FormatError) -> FormatError:
        return FormatError(f"the base file {file.path!r} of the metadata table is damaged: {error.message}; {WAY_OUT}", path=file.path)

    try:
        reader = open_hfile(source_of(storage, file))
        schema = reader.info.get(SCHEMA_INFO)
        if schema is None:
            raise FormatError("it has no schema in its file info")
        return LayerSource(reader, schema.decode("utf-8"), _NO_KEYS, damaged)
    except FormatError as error:
        raise damaged(error) from error


def _block_sources(log: LogFile, block: LogBlock) -> list[LayerSource]:
    def damaged(error: FormatError) -> FormatError:
        return _damaged(log, block, error.message)

    try:
        if block.type is BlockType.HFILE_DATA:
            return [LayerSource(open_hfile_block(block), block.schema or "", _NO_KEYS, damaged)]
        if block.type is BlockType.DELETE:
            return [_deletions(decode_delete_block(block).keys, damaged)]
    except FormatError as error:
        raise damaged(error) from error
    if block.type is BlockType.COMMAND:
        return []
    raise UnsupportedTableError(f"the metadata table has log blocks of type {block.type.name}, which are not read there", path=log.path)


def _check_promises(
    log: LogFile, content: bytes | memoryview, blocks: Sequence[LogBlock], validity: Validity, taken_back: Collection[str | None]
) -> None:
    """Raise `CorruptLogError` if the log file lacks what a delta commit that counts wrote to it."""
    for promise in validity.promises().get(log.path, ()):
        time = promise.instant_time
        if time in taken_back or not validity.counts(time, log):
            continue
        if not promise.kept(content):
            raise _corrupt(log, time, promise.start or 0, "its bytes fail their checksum")
        if not any(block.instant_time == time for block in blocks):
            raise _corrupt(log, time, promise.start or 0, f"it has no block of {time}, which wrote to it")


def _check_damage(log: LogFile, block: LogBlock, validity: Validity) -> None:
    """Raise `CorruptLogError` if the damaged bytes may belong to a delta commit that counts."""
    instant_time = block.instant_time
    if instant_time is None or validity.counts(instant_time, log):
        raise _damaged(log, block, block.damage)


def _damaged(log: LogFile, block: LogBlock, damage: str) -> CorruptLogError:
    return _corrupt(log, block.instant_time, block.offset, damage)


def _corrupt(log: LogFile, instant_time: str | None, offset: int, damage: str) -> CorruptLogError:
    message = f"the log file {log.path!r} of the metadata table is damaged at byte {offset}: {damage}; {WAY_OUT}"
    return CorruptLogError(message, path=log.path, instant=instant_time)
