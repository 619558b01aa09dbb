"""Metadata tables of table version 6, made step by step in the storage of a table; and those of Hudi, written again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.reader import InMemory, open_hfile
from lakehouse_engine.format.hfile.writer import render_hfile, sorted_cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey, LogBlock
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.hfile_block import open_hfile_block, render_hfile_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.metadata_table.payload import decode_payloads, encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

BUILD = "00000000000000010"
"""The instant of the first build in a new table."""
SCHEMA = record_schema(TableVersion.SIX)


@dataclass
class MetadataTableBuilder:
    """Writes files of a metadata table; `publish` completes their delta commit."""

    storage: Storage
    written: dict[str, list[str]] = field(default_factory=dict)

    def begin(self, *partitions: str) -> MetadataTableBuilder:
        """Name the metadata table in the properties of the data table, and give it its own."""
        ConfigStore(self.storage).update({"hoodie.table.metadata.partitions": ",".join(sorted(partitions))})
        lines = {
            "hoodie.table.name": "t_metadata",
            "hoodie.table.type": "MERGE_ON_READ",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.base.file.format": "HFILE",
            "hoodie.table.recordkey.fields": "key",
            "hoodie.populate.meta.fields": "false",
        }
        self._put(".hoodie/hoodie.properties", "".join(f"{key}={value}\n" for key, value in lines.items()).encode())
        return self

    def base(self, group: str, keys: pa.Array, payloads: pa.Table, *, instant: str = BUILD, partition: str = "") -> str:
        """A base file of a group; its path. `partition`: the metadata table's, if the group's name does not tell."""
        cells = sorted_cells(keys, encode_payloads(SCHEMA, payloads))
        content = render_hfile(cells, info={b"schema": SCHEMA.encode()})
        return self._file(group, f"{group}_0-0-0_{instant}.hfile", content, instant, partition)

    def log(self, group: str, version: int, *blocks: bytes, instant: str, partition: str = "", named: bool = True) -> str:
        """A log file on the group's first slice, with the blocks of a delta commit, which does not name it unless `named`; its path."""
        name = f".{group}_{BUILD}.log.{version}_0-0-0"
        return self._file(group, name, b"".join(blocks), instant if named else "", partition)

    def publish(self, instant: str) -> None:
        """Complete the delta commit of the files that were written for it."""
        stats: dict[str, tuple[HoodieWriteStat, ...]] = {}
        for path in self.written.get(instant, []):
            partition = path.partition("/")[0]
            stat = HoodieWriteStat(file_id=path.rpartition("/")[2].lstrip(".").partition("_")[0], path=path, partition_path=partition)
            stats[partition] = (*stats.get(partition, ()), stat)
        for state in (".requested", ".inflight"):
            self._put(f".hoodie/{instant}.deltacommit{state}", b"")
        self._put(f".hoodie/{instant}.deltacommit", FormatV6().encode_commit(HoodieCommitMetadata(partition_to_write_stats=stats)))

    def open(self) -> MetadataTable:
        return MetadataTable.open(TableState.load(self.storage))

    def _file(self, group: str, name: str, content: bytes, instant: str, partition: str) -> str:
        folder = partition or next(stem for start, stem in _FOLDERS.items() if group.startswith(start))
        path = f"{folder}/{name}"
        self._put(f"{folder}/.hoodie_partition_metadata", b"commitTime=0\npartitionDepth=1\n")
        self._put(path, content)
        self.written.setdefault(instant, []).append(path)
        return f"{METADATA_TABLE}/{path}"

    def _put(self, path: str, content: bytes) -> None:
        self.storage.overwrite(f"{METADATA_TABLE}/{path}", content)


_FOLDERS: Mapping[str, str] = {
    "files-": "files",
    "col-stats-": "column_stats",
    "bloom-filters-": "bloom_filters",
    "record-index-": "record_index",
}


def put_block(instant: str, keys: pa.Array, payloads: pa.Table) -> bytes:
    """A data block of records."""
    return render_hfile_block(instant, SCHEMA, sorted_cells(keys, encode_payloads(SCHEMA, payloads)))


def delete_block(instant: str, keys: list[str], partition: str) -> bytes:
    """A block of keys that are deleted."""
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: SCHEMA}
    return render_block(BlockType.DELETE, header, encode_delete_content(pa.array(keys, pa.string()), pa.repeat(partition, len(keys))))


def _written_again(cells: Cells, schema: str) -> Cells:
    """The same records, decoded and encoded by this engine."""
    return Cells(cells.keys, encode_payloads(schema, decode_payloads(schema, cells.values)))


def _block_again(block: LogBlock, data: bytes) -> bytes:
    if block.type is not BlockType.HFILE_DATA:
        return data[block.offset : block.end]
    assert block.instant_time is not None
    assert block.schema is not None
    return render_hfile_block(block.instant_time, block.schema, _written_again(open_hfile_block(block).read_all(), block.schema))


def write_again(folder: Path) -> int:
    """Every HFile of a metadata table written by this engine in place of Hudi's; how many those are."""
    stored = (path for path in (folder / ".hoodie" / "metadata").rglob("*-0_*") if path.suffix == ".hfile" or ".log." in path.name)
    return sum(_file_again(path) for path in stored)


def _file_again(path: Path) -> int:
    data = path.read_bytes()
    if path.suffix == ".hfile":
        reader = open_hfile(InMemory(data))
        cells = reader.read_all()
        info = {key: reader.info[key] for key in (b"schema", b"minRecordKey", b"maxRecordKey") if key in reader.info}
        path.write_bytes(render_hfile(_written_again(cells, reader.info[b"schema"].decode()), info=info))
        return 1
    blocks = list(read_blocks(data))
    path.write_bytes(b"".join(_block_again(block, data) for block in blocks))
    return sum(block.type is BlockType.HFILE_DATA for block in blocks)
