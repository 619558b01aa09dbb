"""`Lakehouse`: a warehouse directory of Hudi tables and stored views, and SQL over it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakehouse_engine import spark as by_spark
from lakehouse_engine import statements
from lakehouse_engine.catalog.atomic_create import made_empty
from lakehouse_engine.catalog.attached import attached_places
from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.catalog.clone import Clone, clone_relation
from lakehouse_engine.catalog.copies import copy_table
from lakehouse_engine.catalog.functions import Functions, StoredFunction
from lakehouse_engine.catalog.names import RelationName, check_catalog_name, split_name
from lakehouse_engine.catalog.records import StoredView
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.engine import TaskRunner, local_runner
from lakehouse_engine.errors import LakehouseError, MissingOptionError
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import CONFLICT_RETRIES, LOCK_TIMEOUT_MS, LockOptions
from lakehouse_engine.options.arguments import checked
from lakehouse_engine.options.read import READ_FILES
from lakehouse_engine.repair import RepairReport, repair
from lakehouse_engine.services.clone import CloneFiles
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import options_of, storage_below, storage_for
from lakehouse_engine.storage.objects.uploads import A_DAY, Upload, clear_uploads
from lakehouse_engine.storage.overlaid import OverlaidStorage, check_hidden
from lakehouse_engine.storage.read_only import ReadOnlyStorage, refusal
from lakehouse_engine.table import HoodieTable, Moment
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, config_of, create_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from lakehouse_engine.spark.frames.statement_views import Pins
    from lakehouse_engine.statements.context import Execution
    from lakehouse_engine.statements.reading import Reading


@checked
class Lakehouse:
    """Tables are at `<warehouse>/<schema>/<table>`, views are stored definitions beside them; no service is needed.

    Without `spark`, data work runs in this process on Arrow, and `sql` is not available. `options` are `hoodie.*` defaults of every table.
    With `allow_files=False`, `sql` refuses statements on files (``csv.`/a/path` ``, `insert overwrite directory`, `add jar`, ...), and the
    session's `spark.sql.runSQLOnFiles` is turned off. A `warehouse` in an object store (`s3://bucket/path`) takes `storage_options`
    (docs/object-stores.md).

    `catalogs` attaches other warehouses by name, read-only: `{"prod": "s3://bucket/path"}`, or with `storage_options` `{"prod":
    {"warehouse": "s3://...", "storage_options": {...}}}`. Then `prod.schema.table` is read there, by `sql`, `table`, `view`, `exists`, and
    as the source of `clone`; changes there raise `ReadOnlyError`. `catalog` is the name of this warehouse itself.
    """

    def __init__(
        self,
        warehouse: str,
        *,
        spark: SparkSession | None = None,
        options: Mapping[str, Any] | None = None,
        allow_files: bool = True,
        storage_options: Mapping[str, str] | None = None,
        catalog: str | None = None,
        catalogs: Mapping[str, str | Mapping[str, Any]] | None = None,
    ) -> None:
        self._options = dict(options or {})
        self._allow_files = allow_files
        self._called = check_catalog_name(catalog) if catalog is not None else ""
        self._given = attached_places(catalogs or {}, self._called)
        if spark is not None:
            by_spark.abilities.check_session(spark)
        self._use(storage_for(warehouse, storage_options), spark)

    def _use(self, storage: Storage, spark: SparkSession | None) -> None:
        self._storage = storage
        self._catalog = Catalog(storage)
        self._spark = spark
        self._states: dict[RelationName, TableState] = {}
        self._attached = {name: self._attach(name, place, spark) for name, place in self._given.items()}
        self._pins = None if spark is None else self._pins_of(spark)

    def _attach(self, name: str, place: Storage, spark: SparkSession | None) -> Lakehouse:
        """Tell Spark how to read the warehouse's own bucket; the engine reads other buckets for it."""
        reading = {} if place.local_path() is not None else {READ_FILES.key: "ENGINE"}
        found = Lakehouse(place.root, options={**self._options, **reading}, allow_files=self._allow_files, catalog=name)
        found._use(ReadOnlyStorage(place, name), spark)
        return found

    def _pins_of(self, spark: SparkSession) -> Pins:
        attached = {name: one._pins for name, one in self._attached.items() if one._pins is not None}
        return by_spark.frames.statement_views.Pins(
            self._catalog, spark, self._state, self._options, allow_files=self._allow_files, called=self._called, attached=attached
        )

    @property
    def catalogs(self) -> Mapping[str, Lakehouse]:
        """Attached warehouses by name, read-only."""
        return MappingProxyType(self._attached)

    def _named(self, name: str) -> RelationName:
        """The relation that a name means here. Raises `ReadOnlyError` for one of an attached catalog."""
        there, found = self._at(name)
        if there is not self:
            raise refusal(there._called, there.warehouse)
        return found

    def _at(self, name: str) -> tuple[Lakehouse, RelationName]:
        """Warehouse in which a name is looked up, and the name there."""
        parts = split_name(name)
        if len(parts) == 3 and parts[0].lower() == self._called:
            return self, RelationName.of(parts[1:])
        there = self._attached.get(parts[0].lower()) if len(parts) == 3 else None
        return (self, RelationName.of(parts)) if there is None else (there, RelationName.of(parts[1:]))

    @property
    def warehouse(self) -> str:
        return self._storage.root

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    # schemas

    def schemas(self) -> list[str]:
        return self._catalog.schemas()

    def create_schema(self, name: str, *, if_not_exists: bool = True) -> None:
        self._catalog.create_schema(name, if_not_exists=if_not_exists)

    def drop_schema(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> bool:
        """Delete a schema and, with `cascade`, everything in it. Waits for the locks of its tables, like `drop_table`; relations that
        others make meanwhile go too. Raises as `Catalog.drop_schema`.
        """
        timeout = LOCK_TIMEOUT_MS.read(self._options)
        return self._catalog.drop_schema(name, cascade=cascade, if_exists=if_exists, lock_timeout_ms=timeout)

    # tables

    def create_table(
        self,
        name: str,
        *,
        schema: pa.Schema | StructType,
        record_key: Sequence[str] = (),
        ordering_fields: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        table_type: str = "cow",
        hive_style: bool = True,
        properties: Mapping[str, str] | None = None,
    ) -> HoodieTable:
        """Make an empty table `schema.table`. Without `record_key`, keys are generated, and rows can only be appended and overwritten.

        Raises `TableExistsError`, also if something else is in its place, and typed errors for what could not be written later.
        """
        parsed = self._named(name)
        columns = schema if isinstance(schema, pa.Schema) else by_spark.schema.to_arrow_schema(schema)
        spec = TableSpec(
            name=parsed.name,
            schema=columns,
            record_key=tuple(record_key),
            ordering_fields=tuple(ordering_fields),
            partition_by=tuple(partition_by),
            table_type=table_type,
            hive_style=hive_style,
            properties=dict(properties or {}),
        )
        return self._make(parsed, spec)

    def table(self, name: str) -> HoodieTable:
        """The table `schema.table`. Raises `TableNotFoundError`."""
        there, found = self._at(name)
        return there._open(there._catalog.table(found))

    def exists(self, name: str) -> bool:
        """True if a table or view has that name."""
        there, found = self._at(name)
        return there._catalog.find(found) is not None

    def tables(self, schema: str | None = None) -> list[str]:
        return [str(name) for name in self._catalog.tables(schema)]

    def drop_table(self, name: str, *, if_exists: bool = False) -> bool:
        """Delete the table with all its files. Waits for the table's lock; raises `LockTimeoutError` naming the process at work on it."""
        timeout = LOCK_TIMEOUT_MS.read(self._options)
        return self._catalog.drop_table(self._named(name), if_exists=if_exists, lock_timeout_ms=timeout)

    def rename_table(self, name: str, new_name: str) -> None:
        """Move the table to another name. Raises as `drop_table`, and `TableExistsError`."""
        timeout = LOCK_TIMEOUT_MS.read(self._options)
        self._catalog.rename_table(self._named(name), self._named(new_name), lock_timeout_ms=timeout)

    def clone(
        self,
        source: str,
        target: str,
        *,
        as_of: Moment | None = None,
        files: str = "auto",
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> WriteResult | None:
        """Make the table `target` from the table `source`, in its current state or as of an instant, timestamp, savepoint name, or `-N` for
        the Nth commit before the newest. Later changes to one do not affect the other.

        `files`: "link" hard-links base files, "copy" copies them, "auto" links where possible. Slices with logs are merged. One commit of
        the new table names its origin; rows keep their commit times. None if `target` exists and `if_not_exists`. Raises, with nothing
        changed, `TableExistsError`, `TableNotFoundError`, and as `to_arrow` of the source.
        """
        there, found = self._at(source)
        name = there._catalog.table(found)
        of = (None, "") if there is self else (there._catalog, f"{there._called}.{name}")
        wanted = Clone(name, self._named(target), as_of, CloneFiles.of(files), or_replace, if_not_exists, *of)
        return clone_relation(self._catalog, wanted, there._state(name), self._runner, self._options)

    def repair_table(
        self,
        name: str,
        *,
        dry_run: bool = False,
        accept_future: bool = False,
        trust_files: bool = False,
        accept_lost_archive: bool = False,
    ) -> RepairReport:
        """Like `HoodieTable.repair`, also if the table cannot be opened because its `hoodie.properties` are damaged or gone."""
        parsed = self._named(name)
        found = self._catalog.find(parsed)
        storage = self._below(found[0] if found is not None else parsed)
        timeout = LOCK_TIMEOUT_MS.read(self._options)
        return repair(
            storage,
            lock_timeout_ms=timeout,
            dry_run=dry_run,
            accept_future=accept_future,
            trust_files=trust_files,
            accept_lost_archive=accept_lost_archive,
        )

    def abort_uploads(self, *, older_than_hours: int = A_DAY, dry_run: bool = False) -> list[Upload]:
        """Remove incomplete uploads that killed writers left below a warehouse in S3 and no listing shows: those begun longer ago than
        that, by the store's clock. A dry run only finds them.

        Raises `UnavailableError` for other stores and without botocore, `OptionError` for a directory.
        """
        return clear_uploads(self._storage, older_than_hours, dry_run=dry_run)

    # views

    def views(self, schema: str | None = None) -> list[str]:
        return [str(name) for name in self._catalog.views(schema)]

    def view(self, name: str) -> StoredView:
        """The stored definition. Raises `RelationNotFoundError`."""
        there, found = self._at(name)
        return there._catalog.view(found)

    def create_view(self, name: str, sql: str, *, or_replace: bool = True) -> None:
        """Store a view without analysing its text; `sql("create view ...")` analyses it."""
        self._catalog.create_view(self._named(name), sql, or_replace=or_replace)

    def drop_view(self, name: str, *, if_exists: bool = False) -> bool:
        return self._catalog.drop_view(self._named(name), if_exists=if_exists)

    # functions

    def functions(self, schema: str) -> list[str]:
        """Names of the schema's stored functions."""
        return [str(name) for name in Functions(self._catalog).names(schema)]

    def create_function(self, name: str, function: StoredFunction) -> None:
        """Store a function, which SQL calls as `schema.name(...)`, replacing one of the same name.

        With a session it is first made there: raises what `SessionFunctions.make` does, with nothing stored.
        """
        parsed = self._named(name)
        if self._pins is not None:
            self._pins.functions.make(parsed, function)
        Functions(self._catalog).put(parsed, function)

    def drop_function(self, name: str, *, if_exists: bool = False) -> bool:
        """Raises `RelationNotFoundError` if there is none, unless `if_exists`."""
        return Functions(self._catalog).drop(self._named(name), if_exists=if_exists)

    # SQL

    def sql(self, text: str, args: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """Run one statement of Spark SQL in which `schema.table` names tables and views of the warehouse.

        Every table that it reads is pinned to its newest commit now. `args` fill `?` (a sequence) or `:name` (a mapping) markers. Returns a
        DataFrame, a `WriteResult` for a write, or None. Raises `SqlError`s before anything runs.
        """
        run = self._execution(args)
        return statements.dispatch.execute(run, text)

    def reading(self) -> Reading:
        """A group of statements: each table that they read is pinned once for all of them."""
        run = self._execution(None)
        return statements.reading.Reading(run)

    def drop_pins(self) -> None:
        """Drop the temporary views of bound statements, if the session is used further. DataFrames keep working."""
        if self._pins is not None:
            self._pins.drop_all()

    def with_session(self, spark: SparkSession) -> Lakehouse:
        """The same warehouse through another Spark session."""
        by_spark.abilities.check_session(spark)
        return self._through(self._storage, spark)

    def with_tables_in(self, folder: str, names: Container[str]) -> Lakehouse:
        """The same warehouse, with the tables `names` (`schema.table` in lower case) read from `folder`, a hidden directory.

        Changes under these names happen there. `names` may grow meanwhile.
        """
        return self._through(OverlaidStorage(self._storage, check_hidden(folder), names), self._spark)

    def copy_table(self, name: str, folder: str) -> ExpectedState:
        """Copy the table's current state with its history below `folder` of the warehouse; returns the state that was copied.

        Files are hard-linked, since nothing changes them: neither table sees changes to the other. Waits for the table's lock.
        """
        folder = check_hidden(folder)
        stored = self._catalog.table(self._named(name))
        return copy_table(self._storage, stored.path, f"{folder}/{stored.path}", lock_timeout_ms=LOCK_TIMEOUT_MS.read(self._options))

    def _through(self, storage: Storage, spark: SparkSession | None) -> Lakehouse:
        found = Lakehouse(
            self.warehouse, options=self._options, allow_files=self._allow_files, storage_options=dict(options_of(self._storage))
        )
        found._called, found._given = self._called, self._given
        found._use(storage, spark)
        return found

    def _execution(self, args: Sequence[Any] | Mapping[str, Any] | None) -> Execution:
        if self._spark is None or self._pins is None:
            raise MissingOptionError("sql() needs a SparkSession: Lakehouse(warehouse, spark=...)")
        by_spark.abilities.check_runs(self._spark)
        repeats = CONFLICT_RETRIES.read(self._options)
        attached = {name: partial(one._execution, args) for name, one in self._attached.items()}
        return statements.context.Execution(
            self._catalog, self._spark, self._pins, self._pins.reads(), self._open, self._make, self._make_in, args, repeats, attached
        )

    def _open(self, name: RelationName) -> HoodieTable:
        return HoodieTable(self._below(name), spark=self._spark, options=self._options, known=self._state(name))

    def _make(self, name: RelationName, spec: TableSpec) -> HoodieTable:
        try:
            config = config_of(self._below(name), spec, self._options)
        except LakehouseError:
            self._catalog.check_free(name)  # a name that is taken is told first
            raise
        stored = self._catalog.claim(name)
        with made_empty(self._catalog, stored, LockOptions.read(spec.properties)):
            ConfigStore(self._below(stored)).create(config)
        return self._open(stored)

    def _make_in(self, place: Storage, spec: TableSpec) -> HoodieTable:
        """A table before it has its name."""
        create_table(place, spec, self._options)
        return HoodieTable(place, spark=self._spark, options=self._options)

    def _runner(self, storage: Storage, options: Mapping[str, Any]) -> TaskRunner:
        return local_runner(options) if self._spark is None else by_spark.session.runner_for(self._spark, storage, options)

    def _below(self, name: RelationName) -> Storage:
        return storage_below(self._storage, name.path)

    def _state(self, name: RelationName) -> TableState:
        """The table's current state. Known commits and partitions are kept, so that a statement reads only what is new."""
        known = self._states.get(name)
        state = known.advance() if known is not None else TableState.load(self._below(name))
        self._states[name] = state
        return state
