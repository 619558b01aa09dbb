"""A merge-on-read table whose delta commits a test makes task by task, each through the timeline as a write does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakehouse_engine.commit.concurrency.attempts import open_to_attempts
from lakehouse_engine.commit.transaction import begin
from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.format.avro.avro_schema import with_meta_columns
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.record.keys.keygen import key_generator_of
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import Keying
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.source import MemorySource
from lakehouse_engine.write.tasks.base_changes import CreateTask, create_file
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from tests.support.properties import edit_properties


class DeltaTable:
    """A table with the key column `id`. `options` are those of every write."""

    def __init__(
        self,
        folder: Path,
        schema: pa.Schema,
        *,
        ordering: str | None = None,
        partition_by: Sequence[str] = (),
        meta_fields: bool = True,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.schema, self.options = folder, schema, WriteOptions.read(options or {})
        self.storage = LocalStorage(str(folder))
        spec = TableSpec(
            name=folder.name,
            schema=schema,
            record_key=["id"],
            ordering_fields=[ordering] if ordering else [],
            partition_by=partition_by,
        )
        create_table(self.storage, spec)
        edit_properties(folder, {"COPY_ON_WRITE": "MERGE_ON_READ", **({} if meta_fields else {"meta.fields=true": "meta.fields=false"})})
        self.avro = table_avro_schema(folder.name, schema)

    @property
    def state(self) -> TableState:
        return TableState.load(self.storage)

    def read(self, **query: Any) -> pa.Table:
        return HoodieTable.open(str(self.folder)).to_arrow(meta_columns=True, **query)

    def keyed(self, rows: pa.Table, instant_time: str = "0") -> MemorySource:
        """Rows as a write stages them."""
        generator = key_generator_of(self.state.config)
        keying = Keying(schema=self.schema, generator=generator, instant_time=instant_time, keyless=False, allow_timestamp_ntz=False)
        return MemorySource(keying.key(rows))

    def commit(self, write: Callable[[FileContext], Sequence[WriteStatus]], action: Action = Action.DELTA_COMMIT) -> list[HoodieWriteStat]:
        """One commit of what `write` does; the stats it has."""
        with begin(self.storage, lock_timeout_ms=1000) as transaction:
            transaction.start(action)
            transaction.inflight(HoodieCommitMetadata(operation_type=WriteOperationType.UPSERT))
            context = self.context(transaction.instant_time)
            stats = [status.stat for status in write(context) if status.stat is not None]
            by_partition: dict[str, tuple[HoodieWriteStat, ...]] = {}
            for stat in stats:
                by_partition[stat.partition_path or ""] = (*by_partition.get(stat.partition_path or "", ()), stat)
            transaction.complete(
                HoodieCommitMetadata(
                    partition_to_write_stats=by_partition,
                    operation_type=WriteOperationType.UPSERT,
                    extra_metadata={SCHEMA_KEY: self.avro},
                )
            )
        return stats

    def context(self, instant_time: str) -> FileContext:
        return FileContext(
            storage=self.storage,
            instant_time=instant_time,
            schema=self.schema,
            avro_schema=with_meta_columns(self.avro),
            options=self.options,
            unique_columns=frozenset({"id"}),
            populate=self.state.config.populates_meta_fields,
        )

    def open_context(self, instant_time: str) -> FileContext:
        """As of a write that is at work, without its instant."""
        open_to_attempts(self.storage, instant_time)
        return self.context(instant_time)

    def insert(self, rows: pa.Table, partition_path: str = "", file_id: str = "group-0") -> list[HoodieWriteStat]:
        """A commit of one new file group."""
        source = self.keyed(rows)
        return self.commit(lambda context: [create_file(CreateTask(context, 0, partition_path, file_id, source, None))])

    def piece(self, file_id: str = "group-0") -> FileSlice:
        return next(piece for piece in self.state.view.latest_slices() if piece.file_id == file_id)

    def reader(self) -> SliceReader:
        state = self.state
        return SliceReader(self.storage, self.schema, MergeRules.of(state.config, self.schema), LogScope.of(state.timeline))

    def logged(self, file_id: str = "group-0") -> LoggedSlice:
        return LoggedSlice(self.piece(file_id))


def numbers(count: int, start: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(start, start + count, dtype=np.int64)
