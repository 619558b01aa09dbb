"""Writes one log file: data blocks as they come, then the keys to delete."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress

import pyarrow as pa

from lakehouse_engine.files.base_positions import NO_POSITIONS, PositionForm, Rows, SaidPositions
from lakehouse_engine.format.avro.avro_schema import without_columns
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block, render_parquet_block
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import frame_block
from lakehouse_engine.model.keys import COMMIT_SEQNO, RECORD_KEY
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.write.tasks.attempt import FileAttempt
from lakehouse_engine.write.tasks.parquet_output import dictionary_leaves, parquet_codec

_DELETES = 500_000
"""Keys in a delete block; its content is made in memory."""

Content = bytes | memoryview


class LogFileWriter:
    """One new log file at `path`. Blocks say that `instant_time` wrote them and carry `avro_schema` (meta columns included).

    `unique_columns` have no repeated values, so no dictionary is tried. It holds no more than the block being written.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        instant_time: str,
        avro_schema: str,
        options: WriteOptions,
        *,
        unique_columns: frozenset[str] = frozenset(),
        attempt: FileAttempt | None = None,
    ) -> None:
        self._storage, self._path, self._options, self._attempt = storage, path, options, attempt
        self._header: dict[int, str] = {HeaderKey.INSTANT_TIME: instant_time, HeaderKey.SCHEMA: avro_schema}
        self._avro_schema = avro_schema
        self._unique = unique_columns | {RECORD_KEY, COMMIT_SEQNO}
        self._sink: pa.NativeFile | None = None
        self._crc = 0

    def write_rows(self, rows: pa.Table, said: SaidPositions = NO_POSITIONS, absent: Collection[str] = ()) -> None:
        """Write a data block of rows in `file_schema` without the `absent` columns. `said`: which base rows they replace."""
        if not rows.num_rows:
            return
        header = {**self._header, **said.header}
        if absent:
            header |= {HeaderKey.SCHEMA: without_columns(self._avro_schema, absent), HeaderKey.IS_PARTIAL: "true"}
        if self._options.log_block_format == "AVRO":
            self._write(BlockType.AVRO_DATA, header, render_avro_block(header[HeaderKey.SCHEMA], rows))
            return
        codec = parquet_codec(self._options.compression)
        dictionary = dictionary_leaves(rows, self._unique) or False
        content = render_parquet_block(rows.unify_dictionaries(), compression=codec, dictionary=dictionary, footer=said.footer)
        self._write(BlockType.PARQUET_DATA, header, content)

    def write_deletes(self, keys: pa.Array, partition_path: str, form: PositionForm, positions: Rows | None) -> None:
        """Write delete blocks of record keys. Their ordering value is the int 0, with which every reader applies the deletion.

        `positions` are those of the keys in the base file of `form` (-1: not there), if they are known.
        """
        for start in range(0, len(keys), _DELETES):
            some, at = keys.slice(start, _DELETES), None if positions is None else positions[start : start + _DELETES]
            said = form.of_deletions(at)
            content = encode_delete_content(said.ordered(some), pa.repeat(partition_path, len(some)))
            self._write(BlockType.DELETE, {**self._header, **said.header}, content)

    def _write(self, kind: BlockType, header: Mapping[int, str], content: Content) -> None:
        head, tail = frame_block(kind, header, len(content))
        with as_storage_errors("write", self._path, self._storage.root):
            if self._sink is None:
                if self._attempt is not None:
                    self._attempt.begin()
                self._sink = self._storage.open_output(self._path)
            for part in (head, content, tail):
                self._sink.write(part)
                self._crc = zlib.crc32(part, self._crc)

    def close(self) -> int:
        """Make the file durable; returns its size in bytes. Something must have been written."""
        assert self._sink is not None
        with as_storage_errors("write", self._path, self._storage.root):
            size = self._sink.tell()
            self._sink.close()
        self._storage.sync(self._path)
        if self._attempt is not None:
            self._attempt.end()
        return int(size)

    @property
    def checksum(self) -> str:
        """The CRC-32 of the file."""
        return f"{self._crc:08x}"

    def discard(self) -> None:
        """Close after a failure. The file is garbage that its marker names, or is removed if the write is over."""
        if self._sink is not None and not self._sink.closed:
            with suppress(OSError):  # closing may fail the same way; the first failure is the one to report
                self._sink.close()
        if self._sink is not None and self._attempt is not None:
            self._attempt.give_up()
