"""The only importer of the engine: builds its objects, calls them, maps its errors and results to dbt's.

What dbt needs to know a profile and to parse is imported here; the rest of the engine (and PySpark with it) is loaded when something of
it is first used: dbt waits for these imports before it can say what to start, and Spark starts meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.later import Later
from dbt.adapters.lakehouse.work.response import LakehouseResponse, write_message
from lakehouse_engine import errors, options
from lakehouse_engine.catalog.names import RelationName, split_name

if TYPE_CHECKING:
    import pyarrow as pa

    from lakehouse_engine.catalog.functions import StoredFunction
    from lakehouse_engine.model.constraints import Constraints

_alter = Later("lakehouse_engine.write.alter")
_catalog = Later("lakehouse_engine.catalog.catalog")
_describe = Later("lakehouse_engine.cli.describe")
_expected = Later("lakehouse_engine.commit.expected")
_functions = Later("lakehouse_engine.catalog.functions")
_footer = Later("lakehouse_engine.files.footer")
_index = Later("lakehouse_engine.index.registry")
_facade = Later("lakehouse_engine.lakehouse")
_local = Later("lakehouse_engine.storage.local")
_lock = Later("lakehouse_engine.timeline.lock")
_moments = Later("lakehouse_engine.read.moments")
_repair = Later("lakehouse_engine.repair")
_staging = Later("lakehouse_engine.commit.staging")
_spark_types = Later("lakehouse_engine.record.spark_types")
_split = Later("lakehouse_engine.sql.grammar.split")
_verify = Later("lakehouse_engine.verify")

Result = TypeVar("Result")
EngineError = errors.LakehouseError

ERRORS: dict[type[errors.LakehouseError], type[DbtRuntimeError]] = {
    errors.OptionError: DbtConfigError,
    errors.TableError: DbtDatabaseError,
    errors.FormatError: DbtRuntimeError,
    errors.StorageError: DbtRuntimeError,
    errors.TimelineError: DbtRuntimeError,
    errors.WriteError: DbtDatabaseError,
    errors.LockError: DbtRuntimeError,
    errors.SavepointError: DbtRuntimeError,
    errors.RollbackError: DbtRuntimeError,
    errors.CompactionError: DbtRuntimeError,
    errors.SqlError: DbtDatabaseError,
    errors.TaskError: DbtRuntimeError,
    errors.UnsupportedSessionError: DbtConfigError,
}
"""Which of dbt's errors stands for a branch of the engine's tree: database errors are those that the user's data or SQL caused."""

KEPT_OPTIONS = ("hoodie.index.type", "hoodie.bucket.index.", "hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class")
"""Options that a table keeps from its creation on: whoever else writes or reads it has to do it by the same rules."""
RETRIES = 3
_HIDDEN = ".lakehouse"
"""The folder of a warehouse for what no reader shall see."""
_LEAVING = frozenset({
    *("SELECT", "WITH", "VALUES", "FROM", "TABLE", "EXPLAIN", "DESCRIBE", "DESC", "SHOW"),
    *("INSERT", "UPDATE", "DELETE", "MERGE"),
})  # fmt: skip
"""First words of queries and of statements that change rows. All others may change the session: SET, USE, CREATE, DECLARE, ADD, ..."""
_FOREIGN = ("pyspark", "py4j")
_MAPPED_PARTITIONS = ("TimestampBasedKeyGenerator", "TIMESTAMP", "CustomKeyGenerator", "CUSTOM")
"""Key generators that put different values of a partition column into one partition."""


def load() -> None:
    """Import what statements use, ahead of the first one."""
    for module in (_facade, _catalog, _expected, _local):
        module.load()


def dbt_error(error: Exception) -> Exception:
    """The dbt error for `error`: by table for the engine's, a database error for Spark's; dbt's own come back as they are."""
    if isinstance(error, DbtRuntimeError):
        return error
    if isinstance(error, errors.LakehouseError):
        return mapped_class(type(error))(str(error))
    if type(error).__module__.split(".")[0] in _FOREIGN:
        return DbtDatabaseError(_spark_text(error))
    return error


def mapped_class(kind: type[errors.LakehouseError]) -> type[DbtRuntimeError]:
    """The table's entry for `kind` or the nearest class above it."""
    return next((ERRORS[base] for base in kind.__mro__ if base in ERRORS), DbtRuntimeError)


def _spark_text(error: Exception) -> str:
    text = str(error).strip()
    for end in ("\n\tat ", "\nJVM stacktrace", ";\n'"):  # a Java stack, or the plan that analysis failed on
        text = text.split(end)[0]
    return text.strip() or type(error).__name__


def retried(write: Callable[[], Result]) -> Result:
    """Run a write again when another writer was faster; nothing was committed then. Raises what the last attempt raised."""
    for attempt in range(1, RETRIES):
        try:
            return write()
        except errors.ChangedSinceReadError:  # noqa: PERF203 - one attempt is a whole commit
            raise  # who read has to read again
        except errors.CommitConflictError:
            time.sleep(0.2 * attempt)
    return write()


def run_again(attempt: Callable[[], Result], retries: int, again: Callable[[], None] | None = None) -> Result:
    """The result of `attempt`, made up to `retries` times more while others change what it read; `again` is called before each."""
    return _expected.repeated(attempt, retries, again)


def conflict_retries(given: Mapping[str, str]) -> int:
    """How often what reads and writes one table is run again because others changed what it read."""
    return options.CONFLICT_RETRIES.read(given)


def is_changed_since_read(error: BaseException) -> bool:
    """Whether a write was refused because what it was computed from has changed."""
    return isinstance(error, errors.ChangedSinceReadError)


def is_outcome_unknown(error: BaseException) -> bool:
    """Whether a write may have been committed although it raised."""
    return isinstance(error, errors.CommitOutcomeUnknownError)


def check_options(hoodie: Mapping[str, Any]) -> list[str]:
    """Refuse `hoodie.*` keys that the engine does not act on; returns those that are Hudi's own tuning.

    Raises `DbtConfigError` naming the nearest known key.
    """
    try:
        ignored = options.check_known(hoodie)
        options.WriteOptions.read(hoodie)
        options.ServiceOptions.read(hoodie)
    except errors.OptionError as error:
        raise DbtConfigError(str(error)) from error
    return ignored


def check_folder(warehouse: str) -> None:
    """Raises `DbtConfigError` where the warehouse is something else than a folder; one that is not there yet is made by the first write."""
    if os.path.lexists(warehouse) and not os.path.isdir(warehouse):
        raise DbtConfigError(f"warehouse: {warehouse} is no folder; name one, or a place where one can be made")


def is_write_result(value: Any) -> bool:
    # A frame of Spark Connect has an attribute of any name.
    return not hasattr(value, "toArrow") and hasattr(value, "instant") and hasattr(value, "inserts")


def response_of(result: Any) -> AdapterResponse:
    """A write result (one commit) as dbt's response; anything else is answered with OK."""
    if not is_write_result(result):
        return AdapterResponse(_message="OK", code="OK")
    operation = str(getattr(result.operation, "value", result.operation)).lower()
    return LakehouseResponse(
        _message=write_message(operation, result.inserts, result.updates, result.deletes, result.instant),
        code=operation.upper(),
        rows_affected=result.rows_affected,
        query_id=result.instant,
        instant=result.instant,
        previous_instant=result.previous_instant,
        operation=operation,
        table_type=_table_type(result.table_type),
        inserts=result.inserts,
        updates=result.updates,
        deletes=result.deletes,
        files_created=result.files_created,
        files_updated=result.files_updated,
        log_files=result.log_files,
        bytes_written=result.bytes_written,
        failed_services=list(result.failed_services) or None,
    )


def _table_type(value: Any) -> str:
    return {"COPY_ON_WRITE": "cow", "MERGE_ON_READ": "mor"}.get(str(getattr(value, "value", value)), str(value).lower())


@dataclass(frozen=True)
class TableShape:
    """How a table is keyed and laid out: what a model must agree with to keep its table."""

    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    hive_style: bool
    table_type: str = "cow"


@dataclass(frozen=True)
class Unopened:
    """A table that nothing was read of."""

    lakehouse: Any
    name: str

    def repair(self, **given: bool) -> Any:
        return self.lakehouse.repair_table(self.name, **given)


@dataclass(frozen=True)
class HeldTables:
    """Tables (`names`: `schema.table` in lower case; more may come) that are looked for below `folder` of the warehouse."""

    folder: str
    names: Container[str]


class Warehouse:
    """A warehouse directory, seen from one thread. Raises the engine's errors; `spark` is None where only metadata is asked for.

    `options` are the profile's defaults for every table; without `allow_files` SQL on files is refused. `held`: tables that are not what
    others see under their names.
    """

    def __init__(
        self,
        root: str,
        spark: Any = None,
        options: Mapping[str, str] | None = None,
        *,
        allow_files: bool = True,
        held: HeldTables | None = None,
    ) -> None:
        self.root = root
        self.spark = spark
        self.options = dict(options or {})
        self.allow_files = allow_files
        self._held = held
        self._reading: Any = None
        self._rests_on: dict[RelationName, Any] = {}

    @cached_property
    def catalog(self) -> Any:
        return self._lakehouse.catalog if self._held else _catalog.Catalog(_local.LocalStorage(self.root))

    def holding(self, held: HeldTables) -> Warehouse:
        """The same warehouse, seen with tables that are held back."""
        return Warehouse(self.root, self.spark, self.options, allow_files=self.allow_files, held=held)

    def keep_rows(self, rows: Any, folder: str) -> Callable[[Warehouse], Any]:
        """Keep the rows of a frame in a folder of the warehouse; how another session comes by them. Arrow tables stay in memory."""
        if not hasattr(rows, "toArrow"):
            return lambda house: rows
        kept, schema = _local.LocalStorage(self.root).uri(folder), rows.schema
        rows.write.parquet(kept)
        return lambda house: house.spark.read.schema(schema).parquet(kept)

    def resting_on(self, schema: str, identifier: str, state: Any) -> Warehouse:
        """The same warehouse, for a write of rows that rest on a state of one table, as `expected` or `hold` answered it."""
        found = copy(self)
        found._rests_on = {RelationName(schema, identifier): state}
        return found

    def hold(self, schema: str, identifier: str, folder: str) -> Any:
        """Put a copy of a table below `folder` of the warehouse, sharing its files; the state that it is of."""
        return self._lakehouse.copy_table(str(RelationName(schema, identifier)), folder)

    def let_go(self, folder: str) -> None:
        """Delete a folder of the warehouse that a copy is in."""
        _local.LocalStorage(self.root).delete_tree(folder)

    def staging_area(self) -> Any:
        """A hidden folder of the warehouse for this process. Those of processes that are gone are removed."""
        storage = _local.LocalStorage(self.root)
        _staging.remove_dead_stages(storage, storage.list(_HIDDEN), _HIDDEN)
        return _staging.StagingArea(storage, _HIDDEN)

    def newest_write(self, schema: str, identifier: str) -> str | None:
        """The instant of a table's newest write; None where there is no table, or no write."""
        if self.kind(schema, identifier) != _catalog.RelationKind.TABLE.value:
            return None
        newest = self.table(schema, identifier).timeline.completed().writes().last()
        return str(newest.requested_time) if newest else None

    def pinned(self) -> Warehouse:
        """The same warehouse, for statements that belong together: each table that they read is at one state for all of them."""
        found = copy(self)
        found._reading = self._lakehouse.reading()
        return found

    def locked(self, schema: str, identifier: str) -> AbstractContextManager[Any]:
        """The table's lock, for a reading and a write that nobody may come between; the write takes it again."""
        return _lock.TableLock(self.table(schema, identifier).storage, options.LOCK_TIMEOUT_MS.read(self.options))

    def expected(self, schema: str, identifier: str) -> Any:
        """What was read of a table since `pinned`, as an argument of its writes; None where it was not read."""
        if (rests_on := self._rests_on.get(RelationName(schema, identifier))) is not None:
            return rests_on
        if self._reading is None or self.kind(schema, identifier) != _catalog.RelationKind.TABLE.value:
            return None
        return self._reading.expected((schema, identifier))

    def wrote(self, schema: str, identifier: str, instant: str) -> None:
        """Say that a table has a write of one's own since it was read."""
        if (rests_on := self._rests_on.get(RelationName(schema, identifier))) is not None:
            self._rests_on[RelationName(schema, identifier)] = rests_on.after([instant])
        if self._reading is not None:
            self._reading.wrote((schema, identifier), instant)

    @cached_property
    def _lakehouse(self) -> Any:
        whole = _facade.Lakehouse(self.root, spark=self.spark, options=self.options, allow_files=self.allow_files)
        return whole.with_tables_in(self._held.folder, self._held.names) if self._held else whole

    def forget_reads(self) -> None:
        """Drop the temporary views that its statements read from; there will be no more of them."""
        if "_lakehouse" in self.__dict__:
            self._lakehouse.drop_pins()

    def sql(self, text: str, bindings: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """One statement through the engine's router: a DataFrame, a write result, or None."""
        return (self._reading or self._lakehouse).sql(text, bindings)

    def named(self, name: str) -> tuple[str, ...] | None:
        """The parts of a name as it stands in SQL, if it is a table or view here; None where it is not, or is no name at all."""
        try:
            parts = split_name(name)
        except errors.SqlError:
            return None  # Spark says what is wrong with it
        return parts if self.catalog.kind_of(parts) is not None else None

    # schemas and relations

    def schemas(self) -> list[str]:
        return self.catalog.schemas()

    def create_schema(self, schema: str) -> None:
        self.catalog.create_schema(schema, if_not_exists=True)

    def drop_schema(self, schema: str) -> None:
        self.catalog.drop_schema(schema, cascade=True, if_exists=True)

    def relations(self, schema: str) -> list[tuple[str, str]]:
        """(identifier, "table", "view" or "function") of everything in a schema; nothing for a schema that is not there.

        A function that has the name of a relation is left out.
        """
        found = self.catalog.find_schema(schema)
        if found is None:
            return []
        names = [(name.name, "table") for name in self.catalog.tables(found)] + [(name.name, "view") for name in self.catalog.views(found)]
        taken = {name.lower() for name, _ in names}
        functions = _functions.Functions(self.catalog).names(found)
        return sorted(names + [(name.name, "function") for name in functions if name.name.lower() not in taken])

    def kind(self, schema: str, identifier: str) -> str | None:
        """ "table", "view", or None where there is neither; also for names of other things, as a source that is a folder of files."""
        found = self.catalog.kind_of((schema, identifier))
        return str(found.value) if found else None

    def drop(self, schema: str, identifier: str) -> None:
        """Drop a table or view; nothing happens when there is neither."""
        name = RelationName(schema, identifier)
        if self.kind(schema, identifier) == _catalog.RelationKind.VIEW.value:
            self.catalog.drop_view(name, if_exists=True)
        elif self.kind(schema, identifier) == _catalog.RelationKind.TABLE.value:
            self._lakehouse.drop_table(str(name))

    def replace(self, schema: str, identifier: str, by: str, may_go: Callable[[], None]) -> None:
        """Put the table `by` of the schema in the place of another one, in one step; `may_go` raises where that must stay."""
        name, expected = RelationName(schema, identifier), self.expected(schema, identifier)
        self._lakehouse.replace_table(str(name), str(RelationName(schema, by)), may_go=may_go, expected=expected)

    # functions

    def create_function(self, schema: str, identifier: str, function: StoredFunction) -> None:
        """Store a function, once the session could make it."""
        self._lakehouse.create_function(str(RelationName(schema, identifier)), function)

    def drop_function(self, schema: str, identifier: str) -> None:
        self._lakehouse.drop_function(str(RelationName(schema, identifier)), if_exists=True)

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        if self.kind(*source) == _catalog.RelationKind.VIEW.value:
            self.catalog.rename_view(RelationName(*source), RelationName(*target))
        else:
            self._lakehouse.rename_table(str(RelationName(*source)), str(RelationName(*target)))

    # views and comments

    def create_view(self, schema: str, identifier: str, sql: str) -> None:
        self.catalog.create_view(RelationName(schema, identifier), sql, or_replace=True)

    def set_comments(self, schema: str, identifier: str, comment: str | None, columns: Mapping[str, str]) -> None:
        self.catalog.set_comments(RelationName(schema, identifier), comment, columns)

    def comments(self, schema: str, identifier: str) -> tuple[str | None, Mapping[str, str]]:
        found = self.catalog.comments(RelationName(schema, identifier))
        return found.comment, found.columns

    # tables

    def table(self, schema: str, identifier: str) -> Any:
        return self._lakehouse.table(str(RelationName(schema, identifier)))

    def unopened(self, schema: str, identifier: str) -> Unopened:
        """The table as something to be repaired: what cannot be read of it may be why."""
        return Unopened(self._lakehouse, str(RelationName(schema, identifier)))

    def stored_rows(self, schema: str, identifier: str) -> Any:
        """The table's newest rows with their meta columns, as a DataFrame."""
        if self._reading is not None:
            return self._reading.stored_rows((schema, identifier))
        return self.table(schema, identifier).dataframe(meta_columns=True)

    def moment(self, schema: str, identifier: str, point: str) -> str:
        """The instant time of the table that an instant, a date or timestamp, a savepoint's name or `-N` means."""
        return _moments.moment_of(self.table(schema, identifier).state, point)

    def shape(self, schema: str, identifier: str) -> TableShape:
        config = self.table(schema, identifier).config
        return TableShape(
            record_key=config.record_key_fields,
            partition_by=config.partition_fields,
            ordering_fields=config.ordering_fields,
            hive_style=config.hive_style_partitioning,
            table_type=_table_type(config.table_type),
        )

    def identity(self, schema: str, identifier: str, given: Mapping[str, str]) -> tuple[str, ...]:
        """The columns by which a row is the same record as a stored one: the record key, with the partition columns where the index
        keeps a key unique in its partition only. `given` are the options of the write.
        """
        table = self.table(schema, identifier)
        config, write = table.config, options.WriteOptions.read({**self.options, **given})
        if _index.load_index(table.state, write).is_global or config.key_generator in _MAPPED_PARTITIONS:
            return config.record_key_fields
        return tuple(dict.fromkeys((*config.record_key_fields, *config.partition_fields)))

    def limit(self, schema: str, identifier: str, lengths: Mapping[str, int | None], *, only_longer: bool = False) -> None:
        """Let text columns hold so many characters and no more (None: any number); with `only_longer` where that is more than now."""
        if not lengths:
            return

        def change(known: Constraints) -> Constraints:
            for column, length in lengths.items():
                before = known.length_of(column)
                if not only_longer or (before is not None and (length is None or length > before)):
                    known = known.with_length(column, length)
            return known

        table = self.table(schema, identifier)
        if change(table.config.constraints) != table.config.constraints:
            timeout = options.LOCK_TIMEOUT_MS.read(self.options)
            _alter.set_constraints(table.storage, change, lock_timeout_ms=timeout)

    def create_filled(
        self,
        schema: str,
        identifier: str,
        rows: Any,
        shape: TableShape,
        write_options: Mapping[str, str],
        metadata: Mapping[str, str],
        lengths: Mapping[str, int | None] | None = None,
    ) -> Any:
        """A new table that holds `rows`, with text columns of those `lengths`.

        If they cannot be written, the table is removed again (unless the commit may be there).
        """
        name = str(RelationName(schema, identifier))
        table = self._lakehouse.create_table(
            name,
            schema=rows.schema,
            record_key=list(shape.record_key),
            ordering_fields=list(shape.ordering_fields),
            partition_by=list(shape.partition_by),
            table_type=shape.table_type,
            hive_style=shape.hive_style,
            properties={key: value for key, value in write_options.items() if key.startswith(KEPT_OPTIONS)},
        )
        try:
            self.limit(schema, identifier, lengths or {})
            return table.bulk_insert(rows, options=dict(write_options), extra_metadata=dict(metadata))
        except errors.CommitOutcomeUnknownError:
            raise
        except BaseException:
            # Another process may have written to it by now: what it wrote is not taken with it.
            self.catalog.drop_table(RelationName(schema, identifier), if_exists=True, unwritten=True)
            raise


def is_merge_on_read(table: Any) -> bool:
    return _table_type(table.config.table_type) == "mor"


def last_write(table: Any) -> datetime | None:
    """When the newest completed write happened, in UTC; None for a table without one."""
    newest = table.timeline.completed().writes().last()
    return _moment(newest.requested_time, table.config.timeline_timezone) if newest else None


def _moment(instant_time: str, zone: str) -> datetime:
    digits = instant_time.ljust(17, "0")[:17]
    moment = datetime.strptime(digits[:14], "%Y%m%d%H%M%S").replace(microsecond=int(digits[14:]) * 1000)  # noqa: DTZ007 - its zone is `zone`
    return moment.replace(tzinfo=timezone.utc) if zone == "UTC" else moment.astimezone(timezone.utc)


def facts(table: Any) -> dict[str, Any]:
    """What a table is, as `lakehouse info` says it."""
    return _describe.describe_table(table.state)


def is_unsolved(disorder: str) -> bool:
    """Whether it is something that a repair may leave and somebody has to see to."""
    return disorder in map(str, _repair.UNSOLVED)


def findings(table: Any, *, quick: bool = False) -> tuple[str | None, list[str]]:
    """The newest completed write, and what is wrong with the table, with the ways out last: nothing, if it is whole.

    `quick` reads no data file.
    """
    report = _verify.verify(table.state, quick=quick)
    wrong = [f"{finding.kind} {finding.path}: {finding.message}" for finding in report.findings]
    return report.instant, wrong + ([f"way out: {report.way_out}"] if wrong and report.way_out else [])


def statistics(table: Any) -> dict[str, Any]:
    """What documentation shows of a table, by the ids of `catalog.STATISTICS`.

    Rows are counted from file footers. What logs make of them only a reading of the table tells: with logs there is no number.
    """
    state = table.state
    newest = state.timeline.completed().writes().last()
    slices = list(state.view.latest_slices())
    bases = [piece.base_file for piece in slices if piece.base_file is not None]
    logs = [log for piece in slices for log in piece.log_files]
    return {
        "rows": None if logs else sum(_footer.read_footer(state.storage, base).num_rows for base in bases),
        "bytes": sum(max(file.size, 0) for file in (*bases, *logs)),
        "files": len(bases) + len(logs),
        "last_commit": newest.requested_time if newest else None,
        "last_operation": str(state.commit_metadata(newest).operation_type).lower() if newest else None,
        "table_type": _table_type(state.config.table_type),
        "record_key": ", ".join(state.config.record_key_fields),
        "partition_by": ", ".join(state.config.partition_fields),
    }


def function_of(
    language: str,
    parameters: Sequence[tuple[str, str, str | None]],
    returns: str,
    body: str,
    *,
    aggregate: bool,
    deterministic: bool | None,
    entry_point: str,
) -> StoredFunction:
    """A function of (name, Spark type, default) parameters. Raises `SqlError`."""
    given = tuple(_functions.Parameter(*one) for one in parameters)
    kind = _functions.Language(language)
    found: StoredFunction = _functions.StoredFunction(kind, given, returns, body, aggregate, deterministic, entry_point)
    return found


def split_statements(text: str) -> list[str]:
    """The statements of a text that holds several, by the engine's lexer."""
    found: list[str] = _split.split_statements(text)
    return found


def leaves_session(sql: str) -> bool:
    """Whether a statement leaves the Spark session that it runs in as it is: its settings, views, functions and variables."""
    return _split.first_word(sql) in _LEAVING


def spark_name(kind: pa.DataType) -> str:
    """The name that Spark prints for a column of this Arrow type."""
    name: str = _spark_types.spark_name(kind)
    return name


def type_names() -> dict[str, pa.DataType]:
    """Spark's types without parameters, by every name of theirs in lower case, as tables store them."""
    return {name: kind.stored for name, kind in _spark_types.BY_NAME.items()}
