"""Incoming rows: brought to the table's schema, given keys, and reduced to one row per key.

An `Input` is what a write was called with: Arrow data (here) or a Spark DataFrame (`spark/input.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.errors import DuplicateKeyError
from lakehouse_engine.format.file_names import new_file_id
from lakehouse_engine.model.constraints import NO_CONSTRAINTS, Constraints
from lakehouse_engine.model.keys import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.record.constraints import check_constraints, fitted
from lakehouse_engine.record.keys.keygen import KeyGenerator, generated_keys
from lakehouse_engine.record.merging.mergers import RecordMerger
from lakehouse_engine.record.merging.ordering import latest_per_key
from lakehouse_engine.record.merging.ordering_fields import OrderingFields
from lakehouse_engine.record.merging.soft_deletes import SoftDeletes
from lakehouse_engine.record.schema import conform, has_untyped, typed_nulls
from lakehouse_engine.record.types import canonical_table
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.source import MemorySource, PatchedSource, Rows, RowSource
from lakehouse_engine.write.tasks.base_changes import CreateTask, create_file
from lakehouse_engine.write.tasks.base_files import FileContext, WriteStatus
from lakehouse_engine.write.tasks.bulk import ENCODED_SHARE, split_by_partition

_WORTH_SPLITTING = 200_000
"""Rows of one partition from which every processor writes a file, although fewer files would hold them."""

_STAGING_THREADS = 2


@dataclass(frozen=True, slots=True)
class Keying:
    """Converts raw rows to rows of the table: canonical types, the table's columns, record key and partition path.

    Picklable; runs where the rows are. `schema` has the table's user columns; `columns` limits the result to some (a delete needs only
    keys). Every row must satisfy `constraints`; with `soft`, deletions stay rows. In a table without key fields, keys are made from
    `instant_time` (empty if there is none yet) and the row's place; with `given_keys`, only for new rows, whose given key is null.
    """

    schema: pa.Schema
    generator: KeyGenerator
    instant_time: str
    keyless: bool
    allow_timestamp_ntz: bool
    given_keys: bool = False
    constraints: Constraints = NO_CONSTRAINTS
    soft: SoftDeletes | None = None

    def key(self, rows: pa.Table, *, task: int = 0, first_row: int = 0) -> pa.Table:
        """Rows with `_hoodie_record_key` and `_hoodie_partition_path` first. Raises `WriteError`s for rows that cannot be stored."""
        given = rows.column(RECORD_KEY) if self.given_keys else None
        user = rows.drop_columns([RECORD_KEY]) if self.given_keys else rows
        if any(map(has_untyped, user.schema.types)):
            user = user.cast(typed_nulls(user.schema, self.schema))
        shaped = conform(canonical_table(user, allow_timestamp_ntz=self.allow_timestamp_ntz, untrusted=True), self.schema)
        shaped = fitted(shaped if self.soft is None else self.soft.applied(shaped), self.constraints)
        if given is not None and not (self.keyless and given.null_count):
            keys = given.cast(pa.string())
        elif self.keyless:
            keys = generated_keys(self.instant_time, task, shaped.num_rows, first_row)
            keys = keys if given is None else pc.coalesce(given.cast(pa.string()), keys)
        else:
            keys = self.generator.record_keys(shaped)
        check_constraints(shaped, keys, self.constraints, soft=self.soft is not None)
        return _keyed(keys, self.generator.partition_paths(shaped), shaped)


@dataclass(frozen=True, slots=True)
class DeleteKeying:
    """Converts rows that only name keys to keyed rows; `schema` has the key (and partition) columns that are used.

    `given_keys`: rows carry `_hoodie_record_key`, and `_hoodie_partition_path` unless the index is global.
    """

    schema: pa.Schema
    generator: KeyGenerator
    is_global: bool
    given_keys: bool

    def key(self, rows: pa.Table, *, task: int = 0, first_row: int = 0) -> pa.Table:
        if self.given_keys:
            keys = rows.column(RECORD_KEY).cast(pa.string())
            paths = _nowhere(rows.num_rows) if self.is_global else rows.column(PARTITION_PATH).cast(pa.string())
            return _keyed(keys, paths, rows.select([]))
        offered = {name.lower(): name for name in rows.column_names}
        chosen = rows.select([offered[name.lower()] for name in self.schema.names])
        shaped = conform(canonical_table(chosen, allow_timestamp_ntz=True, untrusted=True), self.schema)
        keys = self.generator.record_keys(shaped)
        paths = _nowhere(rows.num_rows) if self.is_global else self.generator.partition_paths(shaped)
        return _keyed(keys, paths, shaped)


@dataclass(frozen=True, slots=True)
class RowNumberKeying:
    """Converts rows that name stored rows by `_hoodie_commit_seqno` to keyed rows, with that number as key.

    `are_placed`: they also have `_hoodie_partition_path` and `_hoodie_file_name`.
    """

    are_placed: bool = False

    @classmethod
    def of(cls, offered: pa.Schema) -> RowNumberKeying:
        return cls({PARTITION_PATH, FILE_NAME} <= set(offered.names))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(FILE_NAME, pa.string())] if self.are_placed else [])

    def key(self, rows: pa.Table, *, task: int = 0, first_row: int = 0) -> pa.Table:
        numbers = rows.column(COMMIT_SEQNO).cast(pa.string())
        if not self.are_placed:
            return _keyed(numbers, _nowhere(rows.num_rows), rows.select([]))
        return _keyed(numbers, pc.fill_null(rows.column(PARTITION_PATH).cast(pa.string()), ""), rows.select([FILE_NAME]).cast(self.schema))


def _keyed(keys: pa.Array, paths: pa.Array, rows: pa.Table) -> pa.Table:
    return pa.table([keys, paths.cast(pa.string()), *rows.columns], schema=keyed_schema(rows.schema))


def _nowhere(count: int) -> pa.Array:
    """With a global index the partition of a key to delete does not matter."""
    return pa.array([""], pa.string()).take(pa.array(np.zeros(count, dtype=np.int32)))


def keyed_schema(schema: pa.Schema) -> pa.Schema:
    """Schema of keyed rows."""
    return pa.schema([pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string()), *schema])


class RowKeying(Protocol):
    """Turns raw rows into keyed ones; picklable."""

    @property
    def schema(self) -> pa.Schema: ...

    def key(self, rows: pa.Table, *, task: int = 0, first_row: int = 0) -> pa.Table: ...


class Input(Protocol):
    """Raw rows of a write. Read at most once by either method (ensured by `stage.Stage`)."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema before any conversion."""
        ...

    @property
    def is_query(self) -> bool:
        """True if reading the rows runs a query."""
        ...

    def stage(
        self, keying: RowKeying, storage: Storage, folder: Callable[[], str], arrangement: Arrangement | None = None
    ) -> RowSource:
        """All rows, keyed and readable repeatedly by every task; files, if needed, are below `folder()` of the table.

        With an arrangement, rows are in its order, and distributed to files accordingly.
        """
        ...

    def write_files(
        self, keying: RowKeying, context: FileContext, runner: TaskRunner, arrangement: Arrangement
    ) -> list[WriteStatus]:
        """Stream all rows, keyed and arranged, into new file groups."""
        ...


@dataclass(frozen=True, slots=True)
class ArrowInput:
    """Rows of an Arrow table in this process."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    @property
    def is_query(self) -> bool:
        return False

    def stage(
        self, keying: RowKeying, storage: Storage, folder: Callable[[], str], arrangement: Arrangement | None = None
    ) -> RowSource:
        keyed = self._keyed(keying, _STAGING_THREADS)
        return MemorySource(keyed if arrangement is None else arrangement.sorted(keyed))

    def write_files(
        self, keying: RowKeying, context: FileContext, runner: TaskRunner, arrangement: Arrangement
    ) -> list[WriteStatus]:
        tasks: list[CreateTask] = []
        for partition, rows in split_by_partition(arrangement.sorted(self._keyed(keying, runner.parallelism))):
            per_file = max(1, int(context.options.max_file_size / max(1.0, rows.nbytes / rows.num_rows * ENCODED_SHARE)))
            pieces = -(-rows.num_rows // per_file)
            if rows.num_rows >= _WORTH_SPLITTING:
                pieces += -pieces % runner.parallelism
            for low, high in _cuts(rows.num_rows, pieces):
                part = MemorySource(rows.slice(low, high - low))
                file_id = new_file_id(context.instant_time, partition, len(tasks))
                tasks.append(CreateTask(context, len(tasks), partition, file_id, part, None))
        return runner.run(create_file, tasks, name="write")

    def _keyed(self, keying: RowKeying, threads: int) -> pa.Table:
        """All rows keyed, in parallel slices; slices are numbered so that generated keys differ."""
        pieces = threads if self.table.num_rows >= _WORTH_SPLITTING else 1
        slices = [(number, self.table.slice(low, high - low)) for number, (low, high) in enumerate(_cuts(self.table.num_rows, pieces))]
        return pa.concat_tables(LocalRunner(threads).run(lambda piece: keying.key(piece[1], task=piece[0]), slices, name="key"))


def _cuts(rows: int, pieces: int) -> list[tuple[int, int]]:
    """Bounds of `pieces` pieces of about equal length; one empty piece without rows."""
    return list(itertools.pairwise(rows * number // pieces for number in range(pieces + 1)))


@dataclass(frozen=True, slots=True)
class Batch:
    """A staged batch reduced to the rows that count.

    `keys[i]` is the record key of source row `rows[i]`; `partitions[i]` its partition path; `duplicates` rows were dropped because another
    row of their key is later.
    """

    source: RowSource
    rows: Rows
    keys: pa.Array
    partitions: pa.DictionaryArray
    duplicates: int

    @classmethod
    def of_nothing(cls, source: RowSource) -> Batch:
        """No row of a source."""
        paths = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string()))
        return cls(source, np.empty(0, np.int64), pa.array([], pa.string()), paths, 0)

    def part(self, indices: Rows) -> Batch:
        """Some rows as a batch of the same source."""
        chosen = pa.array(indices, pa.int64())
        return Batch(self.source, self.rows[indices], self.keys.take(chosen), self.partitions.take(chosen), 0)

    def without(self, other: Batch, *, is_global: bool) -> Batch:
        """Rows whose keys are not in another batch."""
        both = pc.is_in(self.identity(is_global), value_set=other.identity(is_global))
        return self.part(np.flatnonzero(~both.to_numpy(zero_copy_only=False)).astype(np.int64))

    def rows_by_partition(self) -> dict[str, Rows]:
        """Indices into `keys` for each partition path, ascending."""
        names = self.partitions.dictionary.to_pylist()
        codes = self.partitions.indices.to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable").astype(np.int64)
        cuts = np.flatnonzero(np.diff(codes[order])) + 1
        return {names[codes[piece[0]]]: piece for piece in np.split(order, cuts) if len(piece)}

    def identity(self, is_global: bool) -> pa.Array:
        """Columns that are unique in a table: the record key, with the partition path unless `is_global`."""
        return self.keys if is_global else pc.binary_join_element_wise(pc.cast(self.partitions, pa.string()), self.keys, "\x00")


def reduce_batch(
    source: RowSource,
    ordering: OrderingFields,
    *,
    is_global: bool,
    policy: str,
    merger: RecordMerger | None = None,
    rows: Rows | None = None,
) -> Batch:
    """Keep the latest row of every key (and partition unless `is_global`) among `rows` (ascending; None for all).

    The greatest ordering value wins, null being the least; of equal ones the last row or, if `merger` says so, the first. If `merger`
    combines rows, older rows fill the latest row's nulls. With policy `ERROR`, several rows of one key raise `DuplicateKeyError` with
    examples. Raises `SchemaIncompatibleError` as `OrderingFields.offered`.
    """
    table = source.columns([RECORD_KEY, PARTITION_PATH, *ordering.roots], rows)
    numbers = np.arange(table.num_rows, dtype=np.int64) if rows is None else rows
    keys, paths = _flat(table.column(RECORD_KEY)), _encoded(table.column(PARTITION_PATH))
    identity = keys if is_global or len(paths.dictionary) <= 1 else _with_partition(keys, paths)
    earliest = merger is not None and merger.earliest_of_equals
    kept = latest_per_key(identity, ordering.offered(table), earliest=earliest)
    dropped = len(keys) - len(kept)
    if dropped and policy == "ERROR":
        raise DuplicateKeyError(
            f"{dropped} rows of the batch have a key that another row has too, for example {_repeated(identity)}; leave them out, or let"
            " the latest of each key stay (lakehouse.duplicate.source.keys=LATEST)"
        )
    if not dropped:
        return Batch(source, numbers, keys, paths, 0)
    if merger is not None and merger.losers_matter:
        source = _filled_in(source, numbers, identity, kept, ordering, merger)
    chosen = pa.array(kept)
    return Batch(source, numbers[kept], keys.take(chosen), paths.take(chosen), dropped)


def _filled_in(
    source: RowSource, numbers: Rows, identity: pa.Array, kept: Rows, ordering: OrderingFields, merger: RecordMerger
) -> RowSource:
    """The source with the last row of every repeated key combined from all rows of that key."""
    left_out = np.setdiff1d(np.arange(len(identity), dtype=np.int64), kept)
    repeated = pc.is_in(identity, value_set=identity.take(pa.array(left_out)))
    rows = np.flatnonzero(repeated.to_numpy(zero_copy_only=False)).astype(np.int64)
    keyed = source.take(numbers[rows])
    user = keyed.drop_columns([RECORD_KEY, PARTITION_PATH])
    merged, latest = merger.reduce(user, identity.take(pa.array(rows)), ordering.values(user))
    where = keyed.select([RECORD_KEY, PARTITION_PATH]).take(pa.array(latest))
    return PatchedSource(source, numbers[rows[latest]], pa.table([*where.columns, *merged.columns], schema=keyed.schema))


def unreduced(source: RowSource, rows: Rows | None = None) -> Batch:
    """Every row of a staged batch (or some), including duplicates."""
    table = source.columns([RECORD_KEY, PARTITION_PATH], rows)
    numbers = np.arange(source.num_rows, dtype=np.int64) if rows is None else rows
    return Batch(source, numbers, _flat(table.column(RECORD_KEY)), _encoded(table.column(PARTITION_PATH)), 0)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    flat = column.combine_chunks()
    return pa.concat_arrays(flat.chunks) if isinstance(flat, pa.ChunkedArray) else flat


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return _flat(column).dictionary_encode()


def _with_partition(keys: pa.Array, paths: pa.DictionaryArray) -> pa.Array:
    return pc.binary_join_element_wise(pc.cast(paths.indices, pa.string()), keys, "\x00")


def _repeated(identity: pa.Array) -> list[str]:
    counts = pc.value_counts(identity)
    values = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    return [str(value).rsplit("\x00", 1)[-1] for value in values.slice(0, 3).to_pylist()]
