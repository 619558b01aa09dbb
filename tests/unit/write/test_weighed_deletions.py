"""Logs with deletions that have ordering values, as Hudi writes them: read, compacted and written to by the rules of who made the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.v6.metadata_json import encode_commit_metadata
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice, LogFile
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
EVENT_TIME = {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING"}
BY_1X = {"1.x by mode": EVENT_TIME, "1.x by fields": {"hoodie.table.ordering.fields": "n"}}
KINDS = {
    **BY_1X,
    "0.15": {},
    "1.x by commit time": {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "1.x partial": {
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
    },
}
OPTIONS = {"hoodie.compact.inline": "false", "hoodie.parquet.small.file.limit": "0"}


def make(folder: Path, properties: dict[str, str]) -> HoodieTable:
    """k1, k2 and k3 with ordering value 5; a log deletes them with 4, 5 and 8."""
    storage = LocalStorage(str(folder))
    create_table(storage, TableSpec("t", SCHEMA, record_key=["id"], ordering_fields=["n"], table_type="mor"))
    table = HoodieTable.open(str(folder))
    table.upsert(batch(k1=5, k2=5, k3=5))
    ConfigStore(storage).update({"hoodie.compaction.record.merger.strategy": None, **properties})
    [piece] = TableState.load(storage).view.latest_slices()
    append(folder, piece, ["k1", "k2", "k3"], [4, 5, 8])
    return HoodieTable.open(str(folder))


def append(folder: Path, piece: FileSlice, keys: list[str], ordering: list[int]) -> None:
    """A log file with a delete block, and the delta commit that says so, a millisecond after the base file's."""
    time = str(int(piece.base_instant) + 1)
    deleted = encode_delete_content(pa.array(keys), pa.array([""] * len(keys)), pa.array(ordering, pa.int64()))
    content = render_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: time}, deleted)
    log = LogFile("", piece.file_id, piece.base_instant, 1, "0-1-0")
    (folder / log.path).write_bytes(content)
    stat = HoodieWriteStat(
        file_id=log.file_id,
        path=log.path,
        prev_commit=piece.base_instant,
        partition_path="",
        num_deletes=len(keys),
        total_write_bytes=len(content),
        file_size_in_bytes=len(content),
        log_offset=0,
        log_version=1,
    )
    metadata = HoodieCommitMetadata(
        partition_to_write_stats={"": (stat,)},
        operation_type=WriteOperationType.UPSERT,
        extra_metadata={"schema": table_avro_schema("t", SCHEMA)},
    )
    for state, text in (("deltacommit.requested", b""), ("deltacommit.inflight", b""), ("deltacommit", encode_commit_metadata(metadata))):
        (folder / ".hoodie" / f"{time}.{state}").write_bytes(text)


def rows_of(table: HoodieTable) -> dict[str, int]:
    found = table.to_arrow()
    rows = dict(zip(found.column("id").to_pylist(), found.column("n").to_pylist(), strict=True))
    assert len(rows) == found.num_rows
    return rows


def batch(**rows: int) -> pa.Table:
    return pa.table({"id": pa.array(rows), "n": pa.array(rows.values(), pa.int64())})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("service", ["", "compaction", "log compaction"])
def test_a_late_deletion_spares_the_base_row_where_hudi_1x_merges_by_event_time(tmp_path: Path, kind: str, service: str) -> None:
    table = make(tmp_path, KINDS[kind])
    if service == "compaction":
        table.compact()
    elif service == "log compaction":
        table.log_compact(options={"hoodie.log.compaction.blocks.threshold": "1"})
    assert rows_of(table) == ({"k1": 5} if kind in BY_1X else {})


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_come_after_deletions_are_stored(tmp_path: Path, kind: str) -> None:
    """What a write of ours brings is resolved first: a deleted key comes back whatever its deletion's value, a spared row stays."""
    table = make(tmp_path, KINDS[kind])
    table.upsert(batch(k1=4, k2=4, k3=6), options=OPTIONS)
    spared = {"k1": 5} if kind in BY_1X else {"k1": 4}
    assert rows_of(table) == {**spared, "k2": 4, "k3": 6}
    table.upsert(batch(k1=6, k3=6), options=OPTIONS)
    assert rows_of(table) == {"k1": 6, "k2": 4, "k3": 6}
    table.compact()
    assert rows_of(table) == {"k1": 6, "k2": 4, "k3": 6}


def test_a_spared_row_is_deleted_by_key(tmp_path: Path) -> None:
    table = make(tmp_path, EVENT_TIME)
    table.delete(batch(k1=0).select(["id"]), options=OPTIONS)
    assert rows_of(table) == {}
