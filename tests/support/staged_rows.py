"""Rows that are in a file of the table once they were read, as a DataFrame's are."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.batch.input import ArrowInput, RowKeying
from lakehouse_engine.write.source import RowSource, StagedFile, StagedSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus


@dataclass
class StagedRows:
    """An `Input`. While the rows are read, `meanwhile` happens in another thread; `times` says how often they were."""

    table: pa.Table
    meanwhile: Callable[[], Any] | None = None
    times: int = 0

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def is_query(self) -> bool:
        return True

    def stage(
        self, keying: RowKeying, storage: Storage, folder: Callable[[], str], arrangement: Arrangement | None = None
    ) -> RowSource:
        below = folder()
        self.times += 1
        if self.meanwhile is not None:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(self.meanwhile).result()
        keyed = keying.key(self.table) if arrangement is None else arrangement.sorted(keying.key(self.table))
        path = f"{below}/{uuid.uuid4().hex}.arrow"
        with storage.open_output(path) as sink, pa.ipc.new_file(sink, keyed.schema) as writer:
            writer.write_table(keyed)
        return StagedSource(storage, (StagedFile(path, keyed.num_rows),), keyed.schema)

    def write_files(
        self, keying: RowKeying, context: FileContext, runner: TaskRunner, arrangement: Arrangement
    ) -> list[WriteStatus]:
        return ArrowInput(self.table).write_files(keying, context, runner, arrangement)
