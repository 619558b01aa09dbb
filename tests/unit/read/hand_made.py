"""A copy-on-write table of version 6 made file by file, with whatever is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.format.properties import render_properties
from lakehouse_engine.format.v6.metadata_avro import encode_record
from lakehouse_engine.format.v6.metadata_json import encode_commit_metadata
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])
PARTITION = "p=1"

Rows = dict[str, tuple[str, int]]
"""Record key -> (commit time, n)."""


def instant(number: int) -> str:
    return f"202401010000{number:02d}000"


@dataclass
class HandMadeTable:
    """`write` adds a commit; every group is `<name>-0` in one partition."""

    folder: Path
    properties: dict[str, str] = field(default_factory=dict)
    versions: dict[str, BaseFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        properties = {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "6",
            "hoodie.timeline.layout.version": "1",
            "hoodie.table.recordkey.fields": "id",
            **self.properties,
        }
        (self.folder / ".hoodie" / "archived").mkdir(parents=True)
        (self.folder / PARTITION).mkdir()
        (self.folder / ".hoodie" / "hoodie.properties").write_bytes(render_properties(properties))
        (self.folder / PARTITION / ".hoodie_partition_metadata").write_bytes(render_partition_metafile(instant(1), 1))

    def state(self) -> TableState:
        return TableState.load(LocalStorage(str(self.folder)))

    def write(self, time: str, groups: dict[str, Rows], *, replaces: tuple[str, ...] = (), schema: pa.Schema | None = SCHEMA) -> None:
        stats = tuple(self._store(time, group, rows, schema or SCHEMA) for group, rows in groups.items())
        metadata = HoodieCommitMetadata(
            partition_to_write_stats={PARTITION: stats} if stats else {},
            operation_type=WriteOperationType.INSERT_OVERWRITE if replaces else WriteOperationType.UPSERT,
            extra_metadata={"schema": table_avro_schema("t", schema)} if schema is not None else {},
            partition_to_replace_file_ids={PARTITION: tuple(f"{name}-0" for name in replaces)} if replaces else None,
        )
        self.timeline_file(f"{time}.{'replacecommit' if replaces else 'commit'}", encode_commit_metadata(metadata))

    def timeline_file(self, name: str, content: bytes) -> None:
        (self.folder / ".hoodie" / name).write_bytes(content)

    def savepoint(self, time: str, *files: BaseFile) -> None:
        pins = {PARTITION: {"partitionPath": PARTITION, "savepointDataFile": [file.name for file in files]}}
        record = {"savepointedBy": "me", "savepointedAt": 0, "comments": "", "partitionMetadata": pins, "version": 1}
        self.timeline_file(f"{time}.savepoint", encode_record("HoodieSavepointMetadata", record))

    def clean(self, time: str, *files: BaseFile) -> None:
        """The record of a clean that says it deleted the files."""
        names = [file.name for file in files]
        cleaned = {"partitionPath": PARTITION, "policy": "KEEP_LATEST_COMMITS", "deletePathPatterns": names, "successDeleteFiles": names}
        record = {
            "startCleanTime": time,
            "timeTakenInMillis": 1,
            "totalFilesDeleted": len(names),
            "earliestCommitToRetain": "",
            "lastCompletedCommitTimestamp": "",
            "partitionMetadata": {PARTITION: {**cleaned, "failedDeleteFiles": [], "isPartitionDeleted": None}},
            "version": 2,
            "bootstrapPartitionMetadata": None,
            "extraMetadata": None,
        }
        self.timeline_file(f"{time}.clean", encode_record("HoodieCleanMetadata", record))

    def archive(self, time: str) -> None:
        """Take a commit off the timeline, as an archival does."""
        (self.folder / ".hoodie" / f"{time}.commit").rename(self.folder / ".hoodie" / "archived" / f".commits_.archive.{time}")

    def remove(self, file: BaseFile) -> None:
        (self.folder / file.path).unlink()

    def _store(self, time: str, group: str, rows: Rows, schema: pa.Schema) -> HoodieWriteStat:
        file = BaseFile(PARTITION, f"{group}-0", "0-1-2", time)
        before = self.versions.get(group)
        values = {
            "_hoodie_commit_time": [commit for commit, _ in rows.values()],
            "_hoodie_commit_seqno": [f"{commit}_0_{row}" for row, (commit, _) in enumerate(rows.values())],
            "_hoodie_record_key": list(rows),
            "_hoodie_partition_path": [PARTITION] * len(rows),
            "_hoodie_file_name": [file.name] * len(rows),
            "id": list(rows),
            "n": [n for _, n in rows.values()],
        }
        meta = [pa.field(name, pa.string()) for name in values if name.startswith("_hoodie")]
        pq.write_table(pa.table(values, schema=pa.schema([*meta, *schema])), self.folder / file.path, store_schema=False)
        self.versions[group] = file
        return HoodieWriteStat(
            file_id=file.file_id,
            path=file.path,
            prev_commit=before.instant_time if before else "null",
            partition_path=PARTITION,
            num_writes=len(rows),
        )
