"""A table, in memory or any storage, whose metadata table gets a delta commit for each of its commits, in any version.

The commits have no data files: what the metadata table says of files and keys is made up, and kept beside for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.format.hfile.cells import Cells
from lakehouse_engine.format.hfile.writer import render_hfile, sorted_cells
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.hfile_block import render_hfile_block
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.metadata_table.files import FILE_ENTRIES, files_payloads
from lakehouse_engine.format.metadata_table.keys import ALL_PARTITIONS
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, encode_locations
from lakehouse_engine.format.metadata_table.payload import encode_payloads
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.format.table_format import format_of_version
from lakehouse_engine.metadata_table.answers import all_record_locations, listed_files
from lakehouse_engine.metadata_table.partitions import FILES, RECORD_INDEX, group_numbers
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.services.metadata.clock import MetadataTableClock
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.versions import version_of_new_tables

INDEX_GROUPS = 2
_GROUPS = {FILES: ["files-0000-0"], RECORD_INDEX: [f"record-index-{number:04d}-0" for number in range(INDEX_GROUPS)]}
_LINES = {
    "hoodie.table.name": "t_metadata",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.populate.meta.fields": "false",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
}
_LAYOUTS = {
    6: {"hoodie.timeline.layout.version": "1", "hoodie.archivelog.folder": "archived"},
    9: {"hoodie.timeline.layout.version": "2", "hoodie.timeline.path": "timeline", "hoodie.timeline.history.path": "history"},
}


def open_data(storage: Storage) -> TableState:
    return TableState.load(storage)


def open_metadata(storage: Storage) -> TableState:
    return TableState.load(storage_below(storage, METADATA_TABLE))


@dataclass
class FollowedTable:
    """`files` are names by partition, `keys` file ids by record key, as the metadata table must have them."""

    storage: Storage
    files: dict[str, set[str]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    commits: int = 0

    @classmethod
    def create(cls, storage: Storage) -> FollowedTable:
        """A new table with an empty metadata table, built as by Hudi: its index has no base files."""
        version = version_of_new_tables()
        create_table(storage, TableSpec("t", pa.schema([("id", pa.string())]), ["id"], partition_by=[], version=version))
        lines = {**_LINES, **_LAYOUTS[int(version)], "hoodie.table.version": str(int(version))}
        text = "".join(f"{key}={value}\n" for key, value in lines.items())
        storage.overwrite(f"{METADATA_TABLE}/.hoodie/hoodie.properties", text.encode())
        made = cls(storage)
        made._build(version)
        ConfigStore(storage).update({"hoodie.table.metadata.partitions": f"{FILES},{RECORD_INDEX}"})
        return made

    def _build(self, version: TableVersion) -> None:
        table_format, metadata = format_of_version(version), storage_below(self.storage, METADATA_TABLE)
        for number, (partition, groups) in enumerate(_GROUPS.items()):
            time = f"000000000000000{10 + number}" if version is TableVersion.SIX else f"{number:017d}"
            stats = []
            metadata.create(f"{partition}/.hoodie_partition_metadata", b"commitTime=0\npartitionDepth=1\n")
            for group in groups:
                metadata.create(f"{partition}/.{group}_{time}.log.1_0-0-0", _deletes(time, partition, [], ""))
                if partition == FILES:
                    path = f"{partition}/{group}_0-0-0_{time}.hfile"
                    stats.append(_stat(metadata, path, group, self._files_file()))
            at = _now(self.storage)
            for state, content in _states(stats, self.schema, table_format):
                shown = at if state is State.COMPLETED and table_format.completes_with_time else None
                instant = Instant(time, Action.DELTA_COMMIT, state, shown)
                metadata.create(f"{table_format.timeline_folder}/{table_format.file_name(instant)}", content)

    def _files_file(self) -> bytes:
        payloads = files_payloads(pa.array([ALL_PARTITIONS]), FILE_ENTRIES.empty_table())
        cells = sorted_cells(pa.array([ALL_PARTITIONS]), encode_payloads(self.schema, payloads))
        return render_hfile(cells, info={b"schema": self.schema.encode()})

    @property
    def schema(self) -> str:
        return record_schema(version_of_new_tables())

    def begin(self) -> str:
        """The instant of a commit that the metadata table has nothing of yet."""
        time = _now(self.storage)
        self._data(time, (State.REQUESTED, State.INFLIGHT))
        return time

    def commit(self, time: str | None = None, *, pending: bool = False) -> str:
        """A commit that adds a file and a key; some remove one of before. `time`: one that was begun. `pending`: it is only completed in
        the metadata table.
        """
        time = self.begin() if time is None else time
        self.commits += 1
        number = self.commits
        partition, name = f"p{number % 3}", f"f{number}-0_0-0-0_{number}.parquet"
        entries = [(partition, name, number, False)]
        if number % 4 == 0 and self.files.get(partition):
            gone = min(self.files[partition])
            entries.append((partition, gone, 0, True))
            self.files[partition].discard(gone)
        self.files.setdefault(partition, set()).add(name)
        puts, deleted = {f"k{number % 40:03d}": f"file-{number}"}, []
        if number % 5 == 0 and (known := sorted(self.keys.keys() - puts.keys())):
            deleted = [known[0]]
            del self.keys[known[0]]
        self.keys |= puts
        self._follow(time, entries, puts, deleted)
        if not pending:
            self._data(time, (State.COMPLETED,))
        return time

    def complete(self, time: str) -> None:
        """Complete a pending commit."""
        self._data(time, (State.COMPLETED,))

    def _data(self, time: str, states: Sequence[State]) -> None:
        table_format = format_of_version(version_of_new_tables())
        for state in states:
            at = _now(self.storage) if state is State.COMPLETED and table_format.completes_with_time else None
            content = table_format.encode_commit(HoodieCommitMetadata()) if state is State.COMPLETED else b""
            name = table_format.file_name(Instant(time, Action.COMMIT, state, at))
            self.storage.create(f"{table_format.timeline_folder}/{name}", content)

    def _follow(self, time: str, entries: Sequence[tuple[str, str, int, bool]], puts: dict[str, str], deleted: Sequence[str]) -> None:
        blocks = {"files-0000-0": [self._files_block(time, entries)]}
        for group, keys in _by_group(list(puts)).items():
            blocks.setdefault(group, []).append(self._index_block(time, {key: puts[key] for key in keys}))
        for group, keys in _by_group(deleted).items():
            blocks.setdefault(group, []).append(_deletes(time, RECORD_INDEX, keys, self.schema))
        metadata = open_metadata(self.storage)
        stats = [self._log(metadata, time, group, b"".join(found)) for group, found in blocks.items()]
        at = _now(self.storage) if metadata.format.completes_with_time else None
        for state, content in _states(stats, self.schema, metadata.format):
            instant = Instant(time, Action.DELTA_COMMIT, state, at if state is State.COMPLETED else None)
            metadata.storage.create(f"{metadata.format.timeline_folder}/{metadata.format.file_name(instant)}", content)

    def _log(self, metadata: TableState, time: str, group: str, content: bytes) -> HoodieWriteStat:
        partition = next(name for name, groups in _GROUPS.items() if group in groups)
        newest = metadata.view.file_group(FileGroupId(partition, group))
        assert newest is not None
        piece = newest.slices[0]
        if metadata.format.logs_by_writer:
            name = f".{group}_{time}.log.1_0-0-0"
        else:
            name = f".{group}_{piece.base_instant}.log.{max((log.version for log in piece.log_files), default=0) + 1}_0-0-0"
        return _stat(metadata.storage, f"{partition}/{name}", group, content)

    def _files_block(self, time: str, entries: Sequence[tuple[str, str, int, bool]]) -> bytes:
        partitions = sorted({partition for partition, _, _, _ in entries})
        keys = [ALL_PARTITIONS, *partitions]
        rows = [(0, partition, 0, False) for partition in partitions]
        rows += sorted((keys.index(partition), name, size, gone) for partition, name, size, gone in entries)
        columns = [pa.array(list(column)) for column in zip(*rows, strict=True)]
        payloads = files_payloads(pa.array(keys), pa.Table.from_arrays(columns, schema=FILE_ENTRIES))
        return render_hfile_block(time, self.schema, sorted_cells(pa.array(keys), encode_payloads(self.schema, payloads)))

    def _index_block(self, time: str, puts: dict[str, str]) -> bytes:
        return render_hfile_block(time, self.schema, index_cells(puts, self.schema))

    def opened(self) -> MetadataTable:
        return MetadataTable.open(open_data(self.storage))

    def check(self) -> None:
        """The metadata table has what the commits put into it."""
        self.check_files()
        located = pa.concat_tables(list(all_record_locations(self.opened())))
        assert dict(zip(located["key"].to_pylist(), located["file_id"].to_pylist(), strict=True)) == self.keys

    def check_files(self) -> None:
        table = self.opened()
        found: dict[str, set[str]] = {}
        for row in listed_files(table).to_pylist():
            found.setdefault(row["partition_path"], set()).add(row["name"])
        assert found == {partition: names for partition, names in self.files.items() if names}


def index_cells(puts: dict[str, str], schema: str) -> Cells:
    """Entries of a record index."""
    rows = pa.table([["p"] * len(puts), list(puts.values()), [0] * len(puts)], schema=LOCATIONS)
    return sorted_cells(pa.array(list(puts), pa.string()), encode_locations(schema, rows))


def _by_group(keys: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, number in zip(keys, group_numbers(pa.array(keys, pa.string()), INDEX_GROUPS).tolist(), strict=True):
        found.setdefault(_GROUPS[RECORD_INDEX][number], []).append(key)
    return found


def _deletes(time: str, partition: str, keys: Sequence[str], schema: str) -> bytes:
    header = {HeaderKey.INSTANT_TIME: time, **({HeaderKey.SCHEMA: schema} if schema else {})}
    return render_block(BlockType.DELETE, header, encode_delete_content(pa.array(keys, pa.string()), pa.repeat(partition, len(keys))))


def _stat(metadata: Storage, path: str, group: str, content: bytes) -> HoodieWriteStat:
    metadata.create(path, content)
    return HoodieWriteStat(
        file_id=group, path=path, partition_path=path.partition("/")[0], total_write_bytes=len(content), file_size_in_bytes=len(content)
    )


def _states(stats: Sequence[HoodieWriteStat], schema: str, table_format: object) -> list[tuple[State, bytes]]:
    by_partition: dict[str, tuple[HoodieWriteStat, ...]] = {}
    for stat in stats:
        by_partition[stat.partition_path or ""] = (*by_partition.get(stat.partition_path or "", ()), stat)
    metadata = HoodieCommitMetadata(partition_to_write_stats=by_partition, extra_metadata={SCHEMA_KEY: schema})
    return [(State.REQUESTED, b""), (State.INFLIGHT, b""), (State.COMPLETED, table_format.encode_commit(metadata))]  # type: ignore[attr-defined]


def _now(storage: Storage) -> str:
    """The next instant of both timelines."""
    data = open_data(storage)
    clock = table_clock(data)
    if not storage.list(f"{METADATA_TABLE}/.hoodie"):
        return clock.next(data.timeline)
    metadata = open_metadata(storage)
    return MetadataTableClock(timezone=clock.timezone, followed=data.timeline).next(Timeline(metadata.timeline.instants))


def many_keys(count: int) -> list[str]:
    """Distinct keys in no order."""
    return [f"{number:08x}" for number in np.random.default_rng(7).permutation(count)]
