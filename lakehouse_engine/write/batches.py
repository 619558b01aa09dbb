"""The batches of a write: its rows, keyed, and reduced to one per key if needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.engine import TaskRunner
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.ordering_fields import NO_ORDERING, OrderingFields
from lakehouse_engine.write.batch.input import Batch, DeleteKeying, Input, RowKeying, RowNumberKeying, reduce_batch, unreduced
from lakehouse_engine.write.batch.stage import DatedSource, Stage
from lakehouse_engine.write.context import WriteContext
from lakehouse_engine.write.effect import INSERTS, REPLACING, Effect
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from lakehouse_engine.write.tasks.bulk import StreamTask, stream_rows


@dataclass(frozen=True, slots=True)
class Reduction:
    """Which rows of a batch count: all, or with `ordering` the one per key that `reduce_batch` keeps. Picklable."""

    ordering: OrderingFields | None
    is_global: bool = False
    policy: str = "LATEST"
    merger: RecordMerger | None = None

    def of(self, source: RowSource, rows: Rows | None = None) -> Batch:
        """Apply it to some rows (ascending; None for all). Raises as `reduce_batch`."""
        if self.ordering is None:
            return unreduced(source, rows)
        return reduce_batch(
            source, self.ordering, is_global=self.is_global, policy=self.policy, merger=self.merger, rows=rows
        )


EVERY_ROW = Reduction(None)


@dataclass(frozen=True, slots=True)
class Batches:
    """What one request writes to a table that `context` describes."""

    request: WriteRequest
    context: WriteContext
    effect: Effect
    stage: Stage

    @classmethod
    def of(cls, request: WriteRequest, context: WriteContext, stage: Stage) -> Batches:
        return cls(request, context, Effect.of(request, context), stage)

    def read(self, *, streams: bool) -> None:
        """Read what is to be written; with `streams` also queries whose rows could go straight into files.

        Raises `WriteError`s for rows that cannot be stored.
        """
        for data, keying in self._inputs():
            if not self.effect.is_streamed:
                self.stage.rows(data, keying)
            elif streams and data.is_query:
                self.stage.rows(data, keying, self.context.arrangement)

    @property
    def are_empty(self) -> bool:
        """True if everything has been read, and there are no rows."""
        given = list(self._inputs())
        return all(self.stage.holds(data) and not self.stage.rows(data, keying).num_rows for data, keying in given)

    @property
    def reduction(self) -> Reduction:
        """Which of the rows to write count."""
        context, options = self.context, self.request.options
        if self.effect.operation is WriteOperationType.DELETE:
            return Reduction(NO_ORDERING, context.is_global)
        everything = self.effect.operation in INSERTS | REPLACING and not self.effect.combines
        if everything or self.request.replaced_rows is not None:
            return EVERY_ROW
        return Reduction(context.ordering, context.is_global, options.duplicate_policy, context.merger)

    def stream(self, files: FileContext, runner: TaskRunner) -> list[WriteStatus]:
        """Write all rows to new file groups."""
        data = self.request.data
        assert data is not None
        if not self.stage.holds(data):
            return data.write_files(self.context.keying(files.instant_time), files, runner, self.context.arrangement)
        parts = self.source(files.instant_time).parts()
        tasks = [StreamTask(files, number, part) for number, part in enumerate(parts)]
        return [status for statuses in runner.run(stream_rows, tasks, name="write") for status in statuses]

    def deletions(self) -> Batch | None:
        """Keys to delete in the same commit."""
        source = self.deleted_keys()
        return None if source is None else self.deletion.of(source)

    def deleted_keys(self) -> RowSource | None:
        """Rows with keys to delete."""
        keys = self.request.delete_keys
        return None if keys is None else self.stage.rows(keys, self._delete_keying(keys))

    @property
    def deletion(self) -> Reduction:
        """Which of them count."""
        keys, ordering = self.request.delete_keys, self.context.ordering
        known = keys is not None and set(ordering.roots) <= set(self._delete_keying(keys).schema.names)
        return Reduction(ordering if known else NO_ORDERING, self.context.is_global)

    def replaced(self) -> RowSource | None:
        """Numbers of stored rows to delete, if the request has some."""
        rows = self.request.replaced_rows
        return None if rows is None else self.stage.rows(rows, RowNumberKeying.of(rows.schema))

    def _inputs(self) -> Iterator[tuple[Input, RowKeying]]:
        request = self.request
        if request.data is not None:
            yield request.data, self._keying(request.data)
        if request.delete_keys is not None:
            yield request.delete_keys, self._delete_keying(request.delete_keys)
        if request.replaced_rows is not None:
            yield request.replaced_rows, RowNumberKeying.of(request.replaced_rows.schema)

    def source(self, instant_time: str) -> RowSource:
        """All given rows."""
        data = self.request.data
        assert data is not None
        source = self.stage.rows(data, self._keying(data))
        return DatedSource(source, instant_time, self.context.given_keys) if self._makes_keys else source

    def _keying(self, data: Input) -> RowKeying:
        if self.effect.operation is WriteOperationType.DELETE:
            return self.context.key_keying(data.schema)
        return self.context.keying()

    def _delete_keying(self, keys: Input) -> DeleteKeying:
        return self.context.key_keying(keys.schema, ordering=True)

    @property
    def _makes_keys(self) -> bool:
        return self.context.keyless and self.effect.operation is not WriteOperationType.DELETE
