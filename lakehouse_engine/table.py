"""`HoodieTable`: one Hudi table, opened from its directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine import spark as by_spark
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.engine import TaskRunner, local_runner, looking_runner
from lakehouse_engine.errors import MissingOptionError, OptionError
from lakehouse_engine.files.schema import user_schema
from lakehouse_engine.files.vanished import told_of_crossing
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.options import TABLE_VERSION, ServiceOptions, WriteOptions, layered
from lakehouse_engine.options.arguments import check, checked
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query, read_options
from lakehouse_engine.services.inline import after_commit
from lakehouse_engine.spark.tasks.task_errors import told_as_raised
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.storage.read_only import check_writable
from lakehouse_engine.table_services import TableServices
from lakehouse_engine.view.moment import at_one_moment
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.given import arrow_input
from lakehouse_engine.write.batch.input import ArrowInput, Input
from lakehouse_engine.write.context import generated_columns
from lakehouse_engine.write.operation import execute_write, written_before
from lakehouse_engine.write.partitions import partition_paths_of
from lakehouse_engine.write.request import WriteRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Moment = str | date | datetime


@checked
class HoodieTable(TableServices):
    """One table. Reads see the newest commit of any process at the time of the call; each write is one commit.

    `data` of every write is a Spark DataFrame, a pyarrow Table or RecordBatchReader, or a pandas DataFrame. `options` are `hoodie.*` keys
    for that call; they override the table's own properties and those given to `open`. `expected_instant`: the write is made only if no
    commit after that instant touched the partitions that it changes (and, if an upsert adds rows, which it may move, took rows away from
    any partition); otherwise it raises `ChangedSinceReadError`. `write_id`: the caller's name for this one write. If the table has a commit
    with that name (active or archived, and not taken back), its result is returned, with `was_written`, and nothing is read or written. So
    a write that got no answer can be repeated.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        spark: SparkSession | None = None,
        options: Mapping[str, Any] | None = None,
        known: TableState | None = None,
    ) -> None:
        if spark is not None:
            by_spark.abilities.check_session(spark)
        super().__init__(storage, options=options, known=known)
        self._spark = spark

    @classmethod
    def open(
        cls,
        path: str,
        *,
        spark: SparkSession | None = None,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> HoodieTable:
        """Open the table in directory `path`, or at `s3://bucket/path` with the store's `storage_options`; starts no JVM.

        Raises `TableNotFoundError`, `UnsupportedTableVersionError`.
        """
        return cls(storage_for(path, storage_options), spark=spark, options=options)

    @property
    def schema(self) -> pa.Schema:
        """User columns, in canonical Arrow types."""
        return user_schema(self.state)

    @property
    def keys_are_global(self) -> bool:
        """True if a record key is unique in the table, False if only in each partition."""
        return load_index(self._state, WriteOptions.read(self._effective({}))).is_global

    # reading

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        *,
        meta_columns: bool = False,
        query: str = "snapshot",
        as_of: Moment | None = None,
        begin: Moment | None = None,
        end: Moment | None = None,
        on_restore: str = "fail",
        filters: pc.Expression | None = None,
        deleted: bool = False,
    ) -> pa.Table:
        """Rows as an Arrow table, without a JVM.

        `query` is `snapshot`, `read_optimized` or `incremental`. `as_of` is an instant, a timestamp or date (text or object), the name of a
        savepoint, or `-N` for the Nth commit before the newest. Incremental queries take the same for `begin` and `end`: they return
        commits after `begin` ("earliest" or None: all) up to and including `end`. If a restore or rollback took back commits up to `begin`,
        `on_restore` decides: "fail" raises `TimelineRestoredError`, "resync" returns the whole snapshot, and "rewind" starts at the instant
        that the table went back to.

        `filters`, an expression over columns (`pc.field("day") == "2026-01-01"`; also meta columns), keeps the rows for which it is true.
        Partitions, files and row groups without such rows are not read. Raises `OptionError` for an expression that does not fit the table.

        `deleted`: includes the deleted rows of a table with soft deletes, and the column `_lakehouse_deleted_at`.
        """
        asked = Query(query, as_of, begin, end, on_restore, filters, deleted)
        runner = looking_runner(local_runner(self._options), self._storage)

        def read(now: TableState) -> pa.Table:
            with told_of_crossing(now):
                return read_arrow(plan_query(now, asked, self._options), columns=columns, meta_columns=meta_columns, runner=runner)

        # If a restore or a clean removes files during the read, it is repeated on the table's new state.
        return at_one_moment(self.state, read)

    def dataframe(
        self,
        spark: SparkSession | None = None,
        *,
        columns: Sequence[str] | None = None,
        meta_columns: bool = False,
        query: str = "snapshot",
        as_of: Moment | None = None,
        begin: Moment | None = None,
        end: Moment | None = None,
        on_restore: str = "fail",
        filters: pc.Expression | None = None,
        deleted: bool = False,
    ) -> DataFrame:
        """The same rows as a DataFrame, pinned to what is committed now; arguments as in `to_arrow`.

        Spark's own Parquet scan reads base files without logs. This process decodes logs up to `lakehouse.read.logs.driver.max.bytes`, and
        merges small slices; above that limit executors do when the frame runs: then `columns` spares them the other columns. With
        `filters`, executors read the base files too. Raises `CorruptFileError` and `CorruptLogError` for damage found here; damage found by
        executors shows when the DataFrame runs, as a Spark error that contains the engine's text.
        """
        session = spark or self._spark
        if session is None:
            raise MissingOptionError("dataframe() needs a SparkSession: pass one, or use to_arrow()")
        by_spark.abilities.check_session(session)
        asked, scan = Query(query, as_of, begin, end, on_restore, filters, deleted), by_spark.frames.scan.scan

        def frame(now: TableState) -> DataFrame:
            with told_of_crossing(now):
                plan = plan_query(now, asked, self._options, paths=True)
                return scan(session, plan, columns=columns, meta_columns=meta_columns, options=read_options(now, self._options))

        # Files read and checked here may be removed meanwhile, as in `to_arrow`.
        return at_one_moment(self.state, frame)

    # writing

    def bulk_insert(self, data: Any, **arguments: Any) -> WriteResult:
        """Add rows to new files without looking anything up: the fastest way in. Does not compare keys with stored ones.

        Stores rows that are marked as deletions, as Hudi does, unless `drop_deletions=True`; every other operation leaves them out.
        """
        return self._write("bulk_insert", WriteOperationType.BULK_INSERT, data, arguments)

    def insert(self, data: Any, **arguments: Any) -> WriteResult:
        """Add rows, filling small files. Does not compare keys with stored ones."""
        return self._write("insert", WriteOperationType.INSERT, data, arguments)

    def upsert(
        self, data: Any, *, merge_update_columns: Sequence[str] | None = None, delete_keys: Any = None, **arguments: Any
    ) -> WriteResult:
        """Update rows whose key is stored, and add the others.

        `merge_update_columns`: in updated rows, only these and the ordering fields change. `delete_keys`: rows with the key columns, to
        delete in the same commit; if they have ordering columns too, an older one deletes nothing.
        """
        return self._write(
            "upsert",
            WriteOperationType.UPSERT,
            data,
            arguments,
            update_columns=tuple(merge_update_columns) if merge_update_columns is not None else None,
            delete_keys=delete_keys,
        )

    def replace_rows(self, data: Any, *, replaced: Any, missing: str = "fail", **arguments: Any) -> WriteResult:
        """Delete single stored rows and add others in one commit; only files that hold a row to delete are rewritten.

        `replaced` has `_hoodie_commit_seqno` of the rows to delete, from a reading with meta columns. With `_hoodie_partition_path` and
        `_hoodie_file_name` too, other files are searched only for rows that are not where they say. Added rows are not compared with stored
        ones. Raises `ChangedSinceReadError` if a row to delete is no longer stored, for example because another writer changed it; with
        `missing="ignore"` the others are deleted, and all of `data` is added.
        """
        return self._write("replace_rows", WriteOperationType.UPSERT, data, arguments, replaced_rows=replaced, missing=missing)

    def delete(self, keys: Any, **arguments: Any) -> WriteResult:
        """Delete rows by key; `keys` has the key columns (and the partition columns unless the index is global)."""
        return self._write("delete", WriteOperationType.DELETE, keys, arguments)

    def insert_overwrite(
        self, data: Any, *, replace_partitions: Sequence[str | Mapping[str, Any]] = (), **arguments: Any
    ) -> WriteResult:
        """Replace the partitions in which `data` has rows, and those named in `replace_partitions`."""
        paths = partition_paths_of(self.config, replace_partitions, self.schema)
        return self._write("insert_overwrite", WriteOperationType.INSERT_OVERWRITE, data, arguments, partitions=paths)

    def insert_overwrite_table(self, data: Any, **arguments: Any) -> WriteResult:
        """Replace all rows in one commit; history stays. With `replace_schema=True`, `data` may have other columns."""
        return self._write("insert_overwrite_table", WriteOperationType.INSERT_OVERWRITE_TABLE, data, arguments)

    def delete_partitions(self, partitions: Sequence[str | Mapping[str, Any]], **arguments: Any) -> WriteResult:
        """Drop whole partitions: paths (`day=2026-11-21`) or mappings of partition column to value."""
        paths = partition_paths_of(self.config, partitions, self.schema)
        return self._write("delete_partitions", WriteOperationType.DELETE_PARTITION, None, arguments, partitions=paths)

    def _write(self, method: str, operation: WriteOperationType, data: Any, given: Mapping[str, Any], **own: Any) -> WriteResult:
        """One write: `given` has the arguments that all methods take, `own` those that `method` names."""
        check_writable(self._storage)
        _check_arguments(method, given)
        options = check("options", "Mapping[str, Any] | None", given.get("options"))
        extra_metadata = check("extra_metadata", "Mapping[str, Any] | None", given.get("extra_metadata"))
        effective = self._effective_now(options or {})
        self._check_version(options or {})
        services = ServiceOptions.read(effective)
        wanted = WriteOptions.read(effective)
        own |= {name: _as_input(own[name], wanted.driver_bytes) for name in _ROWS if own.get(name) is not None}
        rest = {name: value for name, value in given.items() if name not in _FOR_ALL}
        request = WriteRequest(
            operation=operation,
            data=None if operation is WriteOperationType.DELETE_PARTITION else _as_input(data, wanted.driver_bytes),
            options=wanted,
            extra_metadata={key: str(value) for key, value in (extra_metadata or {}).items()},
            **own,
            **rest,
        )
        runner = self._runner(options or {})
        if not all(isinstance(one, ArrowInput | None) for one in (request.data, request.delete_keys, request.replaced_rows)):
            by_spark.input.prepare_inputs(request, self._storage, layered(self._options, options or {}))
        self._lock(options, dry_run=False)
        with told_as_raised():
            result = None if request.write_id is None else written_before(self._storage, request)
            if result is None:
                if generated_columns(self._state, request):
                    request = by_spark.completing.completed(self._state, request, self._spark)
                result = execute_write(self._storage, request, runner, self._state)
        if result.instant is None:
            return result
        failures = after_commit(self._storage, services, request.options, runner, builds_index=result.builds_index)
        return replace(result, failed_services=failures)

    def _check_version(self, options: Mapping[str, Any]) -> None:
        asked, config = TABLE_VERSION.read(options), self._state.config
        if asked not in (None, int(config.version)):
            raise OptionError(
                f"{TABLE_VERSION.key}={asked}: the table has version {int(config.version)}, which a write does not change; leave it out",
                table=config.name,
            )

    def _runner(self, options: Mapping[str, Any]) -> TaskRunner:
        given = layered(self._options, options)
        return local_runner(given) if self._spark is None else by_spark.session.runner_for(self._spark, self._storage, given)


def _as_input(data: Any, driver_bytes: int) -> Input:
    """Input for a write; rows of Arrow or pandas need no Spark."""
    if not any(kind.__module__.startswith("pyspark.") for kind in type(data).__mro__):
        return arrow_input(data)
    return by_spark.input.as_input(data, driver_bytes)


_ROWS = ("delete_keys", "replaced_rows")
_FOR_ALL = frozenset({"options", "extra_metadata"})
_OF_OPERATIONS = frozenset({"operation", "data", "delete_keys", "replaced_rows", "update_columns", "partitions", "generated"})
"""What only methods fill in that name it themselves."""
_ARGUMENTS = (frozenset(one.name for one in fields(WriteRequest)) - _OF_OPERATIONS) | _FOR_ALL
_NAMED = {
    "upsert": {"merge_update_columns", "delete_keys"},
    "replace_rows": {"replaced", "missing"},
    "insert_overwrite": {"replace_partitions"},
}


def _check_arguments(method: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _ARGUMENTS:
            near = get_close_matches(name, _ARGUMENTS | _NAMED.get(method, set()), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}{hint}")
    for name in ("replace_schema", "redefines", "given_keys", "as_given", "single_rows", "drop_deletions"):
        if name in given:
            check(name, "bool", given[name])
    if not isinstance(given.get("expected"), ExpectedState | None):
        raise OptionError(f"expected={given['expected']!r} is not what a statement has read; to name an instant there is expected_instant")
    check("missing", "str", given.get("missing", ""))
    for name in ("expected_instant", "write_id"):
        check(name, "str | None", given.get(name))
