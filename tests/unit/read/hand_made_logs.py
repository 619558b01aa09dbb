"""Merge-on-read tables made file by file: logs on top of `HandMadeTable`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import render_avro_block, render_parquet_block
from lakehouse_engine.format.log.delete_block import encode_delete_content
from lakehouse_engine.format.log.writer import render_block
from lakehouse_engine.format.v6.metadata_json import encode_commit_metadata
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import LogFile
from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from tests.unit.read.hand_made import PARTITION, SCHEMA, HandMadeTable

AVRO_SCHEMA = with_meta_columns(table_avro_schema("t", SCHEMA))


def log_rows(time: str, rows: dict[str, int]) -> pa.Table:
    """Rows (key -> n) as a log block has them."""
    values: dict[str, list[object]] = {
        "_hoodie_commit_time": [time] * len(rows),
        "_hoodie_commit_seqno": [f"{time}_0_{row}" for row in range(len(rows))],
        "_hoodie_record_key": list(rows),
        "_hoodie_partition_path": [PARTITION] * len(rows),
        "_hoodie_file_name": ["a-0"] * len(rows),
        "id": list(rows),
        "n": list(rows.values()),
    }
    return pa.table(values, schema=pa.schema([*[(name, pa.string()) for name in META_COLUMNS], *SCHEMA]))


def header(time: str) -> dict[int, str]:
    return {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: AVRO_SCHEMA}


def data_block(time: str, rows: dict[str, int], *, parquet: bool = False) -> bytes:
    table = log_rows(time, rows)
    if parquet:
        return render_block(BlockType.PARQUET_DATA, header(time), render_parquet_block(table))
    return render_block(BlockType.AVRO_DATA, header(time), render_avro_block(AVRO_SCHEMA, table))


def delete_block(time: str, keys: Sequence[str], ordering: Sequence[int] | None = None) -> bytes:
    values = None if ordering is None else pa.array(ordering, pa.int64())
    content = encode_delete_content(pa.array(keys, pa.string()), pa.array([PARTITION] * len(keys), pa.string()), values)
    return render_block(BlockType.DELETE, header(time), content)


class HandMadeLogTable(HandMadeTable):
    """`write` adds base files; `append` a log file with a commit, `log` a log file alone."""

    def __init__(self, folder: Path, properties: dict[str, str] | None = None) -> None:
        super().__init__(folder, {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.precombine.field": "n", **(properties or {})})

    def log(self, base: str, version: int, content: bytes, group: str = "a") -> LogFile:
        log = LogFile(PARTITION, f"{group}-0", base, version, f"0-{version}-0")
        (self.folder / log.path).write_bytes(content)
        return log

    def append(self, time: str, base: str, version: int, content: bytes, group: str = "a") -> LogFile:
        """A log file and the delta commit that says so."""
        log = self.log(base, version, content, group)
        stat = HoodieWriteStat(
            file_id=log.file_id,
            path=log.path,
            prev_commit=base,
            partition_path=PARTITION,
            num_writes=1,
            total_write_bytes=len(content),
            file_size_in_bytes=len(content),
            log_offset=0,
            log_version=version,
        )
        metadata = HoodieCommitMetadata(
            partition_to_write_stats={PARTITION: (stat,)},
            operation_type=WriteOperationType.UPSERT,
            extra_metadata={"schema": table_avro_schema("t", SCHEMA)},
        )
        self.timeline_file(f"{time}.deltacommit", encode_commit_metadata(metadata))
        return log

    def archive(self, time: str) -> None:
        kind = "deltacommit" if (self.folder / ".hoodie" / f"{time}.deltacommit").exists() else "commit"
        (self.folder / ".hoodie" / f"{time}.{kind}").rename(self.folder / ".hoodie" / "archived" / f".commits_.archive.{time}")

    def put(self, log: LogFile, content: bytes) -> None:
        (self.folder / log.path).write_bytes(content)
