"""The batches of a write: the rows that it was given, keyed, and reduced to one a key where that is asked for."""

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
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from lakehouse_engine.write.tasks.bulk import StreamTask, stream_rows

INSERTS = frozenset({WriteOperationType.INSERT, WriteOperationType.BULK_INSERT})
REPLACING = frozenset(
    {WriteOperationType.INSERT_OVERWRITE, WriteOperationType.INSERT_OVERWRITE_TABLE, WriteOperationType.DELETE_PARTITION}
)
"""Operations that take file groups out of the table."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Which rows of a batch count: all of them, or with `ordering` the one of every key that `reduce_batch` keeps. Picklable."""

    ordering: OrderingFields | None
    is_global: bool = False
    policy: str = "LATEST"
    merger: RecordMerger | None = None

    def of(self, source: RowSource, rows: Rows | None = None) -> Batch:
        """Of some rows (ascending), None for all. Raises as `reduce_batch`."""
        if self.ordering is None:
            return unreduced(source, rows)
        return reduce_batch(
            source, self.ordering, is_global=self.is_global, policy=self.policy, merger=self.merger, rows=rows
        )


EVERY_ROW = Reduction(None)


@dataclass(frozen=True, slots=True)
class Batches:
    """What there is to write, of one request to a table as `context` has it."""

    request: WriteRequest
    context: WriteContext
    stage: Stage

    def read(self, *, streams: bool) -> None:
        """Evaluate what is to be written; with `streams` also queries whose rows could go straight into files.

        Raises `WriteError`s for rows that cannot be held.
        """
        for data, keying in self._inputs():
            if not self.is_streamed:
                self.stage.rows(data, keying)
            elif streams and data.is_query:
                self.stage.rows(data, keying, self.context.arrangement)

    @property
    def are_empty(self) -> bool:
        """Whether all was read by now, and there are no rows in it."""
        given = list(self._inputs())
        return all(self.stage.holds(data) and not self.stage.rows(data, keying).num_rows for data, keying in given)

    @property
    def is_streamed(self) -> bool:
        """Whether rows go into files as they come, for nothing has to be known of them before."""
        return self.makes_new_groups and not self._combines and self.context.layout is None and not self.drops_deletions

    @property
    def drops_deletions(self) -> bool:
        """Whether rows that are marked as deletions are left out of those that go to new file groups."""
        drops = self.request.drop_deletions
        if drops is None:
            drops = self.request.operation is not WriteOperationType.BULK_INSERT
        return drops and bool(self.context.marks.columns(self.context.schema.names))

    @property
    def makes_new_groups(self) -> bool:
        """Whether every row goes to a new file group, and no key is looked up."""
        operation = self.request.operation
        return operation in REPLACING or (operation is WriteOperationType.BULK_INSERT and self.context.layout is None)

    @property
    def reduction(self) -> Reduction:
        """Which of the rows to write count."""
        context, options = self.context, self.request.options
        if self.request.operation is WriteOperationType.DELETE:
            return Reduction(NO_ORDERING, context.is_global)
        everything = self.request.operation in INSERTS | REPLACING and not self._combines
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
        """The rows that name them."""
        keys = self.request.delete_keys
        return None if keys is None else self.stage.rows(keys, self._delete_keying(keys))

    @property
    def deletion(self) -> Reduction:
        """Which of them count."""
        keys, ordering = self.request.delete_keys, self.context.ordering
        known = keys is not None and set(ordering.roots) <= set(self._delete_keying(keys).schema.names)
        return Reduction(ordering if known else NO_ORDERING, self.context.is_global)

    def replaced(self) -> RowSource | None:
        """Stored rows that go, by their numbers, where the request names some."""
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
        """The rows to write, all that were given."""
        data = self.request.data
        assert data is not None
        source = self.stage.rows(data, self._keying(data))
        return DatedSource(source, instant_time, self.context.given_keys) if self._makes_keys else source

    def _keying(self, data: Input) -> RowKeying:
        if self.request.operation is WriteOperationType.DELETE:
            return self.context.key_keying(data.schema)
        return self.context.keying()

    def _delete_keying(self, keys: Input) -> DeleteKeying:
        return self.context.key_keying(keys.schema, ordering=True)

    @property
    def _makes_keys(self) -> bool:
        return self.context.keyless and self.request.operation is not WriteOperationType.DELETE

    @property
    def _combines(self) -> bool:
        """Whether one row of a key is kept of an insert. A log holds one row a key, as far as readers are concerned."""
        if self.context.keyless:
            return False
        logged = self.context.layout is not None and self.context.merges_on_read
        return self.request.options.combine_before_insert or (logged and self.request.operation in INSERTS)
