"""File groups of a metadata table's partitions as layers: the entries of the base file, then those of each log block.

A block counts if its delta commit is completed in the metadata table and not pending in the data table (Hudi 1.x,
`HoodieTableMetadataUtil.getValidInstantTimestamps`), its commit names its file, and no rollback block takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

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
from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import identity_of
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.view.table_state import TableState

Select = Callable[[HFileReader], Cells]
"""Selects the wanted entries of an HFile."""


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

    @classmethod
    def of(cls, metadata: TableState, data: TableState) -> Validity:
        pending = frozenset(one.requested_time for one in data.timeline.pending())
        completed = {one.requested_time: one for one in metadata.timeline.completed().writes()}
        return cls(metadata, pending, completed)

    def counts(self, instant_time: str, log: LogFile) -> bool:
        """True if blocks of that instant in the log file count."""
        if instant_time in self.pending or not self.metadata.timeline.is_committed(instant_time):
            return False
        instant = self.completed.get(instant_time)
        names = None if instant is None else self.metadata.named_files(instant)
        return names is None or log.name in names


def layers_of(piece: FileSlice, validity: Validity, select: Select) -> list[Layer]:
    """Layers of a slice with the entries that `select` picks, and all deletions; the first is the base file's, empty without one.

    Raises `StoredFileNotFoundError`, and `FormatError` or `CorruptLogError` if a file is damaged.
    """
    storage = validity.metadata.storage
    layers = [Layer.deletion(pa.array([], pa.binary()))]
    if piece.base_file is not None:
        layers = [_base_layer(storage, piece.base_file, select)]
    blocks = [(log, block) for log in piece.log_files for block in read_blocks(mapped(storage, log.path))]
    taken_back = {block.target_instant_time for _, block in blocks if block.is_rollback}
    for log, block in blocks:
        instant_time = block.instant_time
        if block.type is BlockType.CORRUPT and (instant_time is None or instant_time not in taken_back):
            _check_damage(log, block, validity)
        elif instant_time is not None and instant_time not in taken_back and validity.counts(instant_time, log):
            layers += _block_layers(log, block, select)
    return layers


def _base_layer(storage: Storage, file: BaseFile, select: Select) -> Layer:
    try:
        reader = open_hfile(source_of(storage, file))
        schema = reader.info.get(SCHEMA_INFO)
        if schema is None:
            raise FormatError("it has no schema in its file info")
        return Layer(select(reader), schema.decode("utf-8"))
    except FormatError as error:
        raise FormatError(f"the base file {file.path!r} of the metadata table is damaged: {error.message}", path=file.path) from error


def _block_layers(log: LogFile, block: LogBlock, select: Select) -> list[Layer]:
    try:
        if block.type is BlockType.HFILE_DATA:
            return [Layer(select(open_hfile_block(block)), block.schema or "")]
        if block.type is BlockType.DELETE:
            return [Layer.deletion(decode_delete_block(block).keys)]
    except FormatError as error:
        raise _damaged(log, block, error.message) from error
    if block.type is BlockType.COMMAND:
        return []
    raise UnsupportedTableError(f"the metadata table has log blocks of type {block.type.name}, which are not read there", path=log.path)


def _check_damage(log: LogFile, block: LogBlock, validity: Validity) -> None:
    """Raise `CorruptLogError` if the damaged bytes may belong to a delta commit that counts."""
    instant_time = block.instant_time
    if instant_time is None or validity.counts(instant_time, log):
        raise _damaged(log, block, block.damage)


def _damaged(log: LogFile, block: LogBlock, damage: str) -> CorruptLogError:
    message = f"the log file {log.path!r} of the metadata table is damaged at byte {block.offset}: {damage}"
    return CorruptLogError(message, path=log.path, instant=block.instant_time)
