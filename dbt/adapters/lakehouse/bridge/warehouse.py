"""A warehouse as the adapter uses it, from one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge import builds, creation
from dbt.adapters.lakehouse.bridge.shapes import HeldTables, TableShape, Unopened
from dbt.adapters.lakehouse.bridge.stored import StoredTable
from lakehouse_engine import api
from lakehouse_engine.api.errors import SqlError
from lakehouse_engine.api.names import RelationName, split_name
from lakehouse_engine.api.options import lock_timeout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse_engine.api.statements import Reading
    from lakehouse_engine.api.tables import ExpectedState, HoodieTable
    from lakehouse_engine.api.warehouse import Catalog, Lakehouse, StagingArea, Storage, StoredFunction, WriteResult

KEPT_OPTIONS = (
    "hoodie.index.type",
    "hoodie.metadata.",
    "hoodie.bucket.index.",
    "hoodie.datasource.write.payload.class",
    "hoodie.compaction.payload.class",
)
"""Options that a table stores at creation, because every later writer and reader must follow them."""
_HIDDEN = ".lakehouse"
"""Hidden folder of a warehouse; readers never see it."""


def load() -> tuple[object, ...]:
    """Import what statements need, before the first one. Seeds and operations without statements load no PySpark."""
    return api.statements, api.frames, api.warehouse, api.tables, api.types, api.sql


class Warehouse:
    """A warehouse, seen from one thread. Raises the engine's errors; `spark` is None if only metadata is needed.

    `options` are the profile's defaults for every table; without `allow_files` SQL on files is refused. `storage_options` belong to an
    object store. `held` maps tables to copies that this view reads instead. `catalogs` are other warehouses by name, as `Lakehouse` takes
    them; `catalog` is the name of this one.
    """

    def __init__(
        self,
        root: str,
        spark: SparkSession | None = None,
        options: Mapping[str, str] | None = None,
        *,
        allow_files: bool = True,
        storage_options: Mapping[str, str] | None = None,
        held: HeldTables | None = None,
        catalog: str | None = None,
        catalogs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.called, self.catalogs = catalog, dict(catalogs or {})
        self.root = root
        self.storage_options = dict(storage_options or {})
        self.spark = spark
        self.options = dict(options or {})
        self.allow_files = allow_files
        self._held = held
        self._reading: Reading | None = None
        self._rests_on: dict[RelationName, ExpectedState] = {}

    @property
    def session(self) -> SparkSession:
        """The Spark session; raises if the warehouse was opened without one."""
        if self.spark is None:
            raise RuntimeError(f"the warehouse {self.root} was opened without a Spark session")
        return self.spark

    @cached_property
    def storage(self) -> Storage:
        """The whole warehouse, without held tables."""
        return api.warehouse.storage_for(self.root, self.storage_options)

    def check_usable(self) -> None:
        """Raise `UnusablePlaceError` if no warehouse can be made or written here; leaves no trace of the attempt."""
        api.warehouse.check_usable(self.storage)

    @cached_property
    def catalog(self) -> Catalog:
        return self._lakehouse.catalog if self._held else api.warehouse.Catalog(self.storage)

    def holding(self, held: HeldTables) -> Warehouse:
        """The same warehouse with tables held back."""
        return Warehouse(
            self.root,
            self.spark,
            self.options,
            allow_files=self.allow_files,
            storage_options=self.storage_options,
            held=held,
            catalog=self.called,
            catalogs=self.catalogs,
        )

    def attached(self, name: str) -> Warehouse:
        """An attached warehouse, for metadata."""
        place = self.catalogs[name]
        return Warehouse(place["warehouse"], options=self.options, storage_options=place["storage_options"], catalog=name)

    def keep_rows(self, rows: Any, folder: str) -> Callable[[Warehouse], Any]:
        """Store the rows of a frame in a folder of the warehouse, so that another session can read them. Arrow tables stay in memory."""
        if not hasattr(rows, "toArrow"):
            return lambda house: rows
        found = api.frames.keep_rows(rows, self.storage, folder)
        return lambda house: found(house.session)

    def resting_on(self, schema: str, identifier: str, state: ExpectedState) -> Warehouse:
        """The same warehouse, for a write whose rows were computed from one state of a table (from `expected` or `hold`)."""
        found = copy(self)
        found._rests_on = {RelationName(schema, identifier): state}
        return found

    def hold(self, schema: str, identifier: str, folder: str) -> ExpectedState:
        """Put a copy of a table below `folder`, sharing its files; returns the state that was copied."""
        return self._lakehouse.copy_table(str(RelationName(schema, identifier)), folder)

    def let_go(self, folder: str) -> None:
        """Delete a folder of the warehouse that holds a copy."""
        self.storage.delete_tree(folder)

    def check_held(self, schema: str, identifier: str, state: ExpectedState) -> None:
        """Raise `ChangedSinceReadError` if the table has changed since `hold`."""
        api.tables.check_unchanged(self.look(schema, identifier).state, state)

    def staging_area(self) -> StagingArea:
        """Hidden folder of the warehouse for this process. Removes folders of dead processes."""
        return api.warehouse.staging_area(self.storage, _HIDDEN)

    def remove_dead_stages(self) -> None:
        """Remove what dead processes left in hidden folders of the warehouse."""
        api.warehouse.remove_dead_stages(self.storage, _HIDDEN)

    def newest_write(self, schema: str, identifier: str) -> str | None:
        """Instant of a table's newest write; None without a table or write."""
        return self.look(schema, identifier).newest_write if self.kind(schema, identifier) == "table" else None

    def pinned(self) -> Warehouse:
        """The same warehouse for a group of statements: each table that they read stays at one state."""
        found = copy(self)
        found._reading = self._lakehouse.reading()
        return found

    def locked(self, schema: str, identifier: str) -> AbstractContextManager[Any]:
        """The table's lock, for a read and a write with nothing in between; the write takes it again."""
        return api.tables.lock(self.table(schema, identifier), self.options)

    def expected(self, schema: str, identifier: str) -> ExpectedState | None:
        """What was read of a table since `pinned`, for its writes; None if it was not read."""
        if (rests_on := self._rests_on.get(RelationName(schema, identifier))) is not None:
            return rests_on
        if self._reading is None or self.kind(schema, identifier) != "table":
            return None
        return self._reading.expected((schema, identifier))

    def wrote(self, schema: str, identifier: str, instant: str) -> None:
        """Record that this process has written the table since it was read."""
        if (rests_on := self._rests_on.get(RelationName(schema, identifier))) is not None:
            self._rests_on[RelationName(schema, identifier)] = rests_on.after([instant])
        if self._reading is not None:
            self._reading.wrote((schema, identifier), instant)

    @cached_property
    def _lakehouse(self) -> Lakehouse:
        whole = api.warehouse.Lakehouse(
            self.root,
            spark=self.spark,
            options=self.options,
            allow_files=self.allow_files,
            storage_options=self.storage_options,
            catalog=self.called,
            catalogs=self.catalogs,
        )
        return whole.with_tables_in(self._held.folder, self._held.names) if self._held else whole

    def forget_reads(self) -> None:
        """Drop the temporary views of its statements; no more will follow."""
        if "_lakehouse" in self.__dict__:
            self._lakehouse.drop_pins()

    def sql(self, text: str, bindings: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """Run one statement through the engine's router: a DataFrame, a write result, or None."""
        return (self._reading or self._lakehouse).sql(text, bindings)

    def named(self, name: str) -> tuple[str, ...] | None:
        """Parts of a name as written in SQL, if it is a table or view here; else None."""
        try:
            parts = split_name(name)
        except SqlError:
            return None  # Spark reports the error
        if len(parts) == 3 and parts[0].lower() in self.catalogs:
            return parts
        return parts if self.catalog.kind_of(parts) is not None else None

    # schemas and relations

    def schemas(self) -> list[str]:
        return self.catalog.schemas()

    def create_schema(self, schema: str) -> None:
        self.catalog.create_schema(schema, if_not_exists=True)

    def drop_schema(self, schema: str) -> None:
        self.catalog.drop_schema(schema, cascade=True, if_exists=True)

    def relations(self, schema: str) -> list[tuple[str, str]]:
        """(identifier, kind) of every relation in a schema, kind being "table", "materialized_view", "view" or "function"; empty if the
        schema does not exist.

        A function with the name of a relation is left out.
        """
        found = self.catalog.find_schema(schema)
        if found is None:
            return []
        tables = [(name.name, _table_kind(query)) for name, query in self.catalog.queries(found).items()]
        names = tables + [(name.name, "view") for name in self.catalog.views(found)]
        taken = {name.lower() for name, _ in names}
        functions = api.warehouse.Functions(self.catalog).names(found)
        return sorted(names + [(name.name, "function") for name in functions if name.name.lower() not in taken])

    def told_kind(self, schema: str, identifier: str) -> str | None:
        """`kind`, with materialized views told from other tables."""
        kind = self.kind(schema, identifier)
        if kind != "table":
            return kind
        return _table_kind(self.catalog.materialized_query(self.catalog.table(RelationName(schema, identifier))))

    def forget_query(self, schema: str, identifier: str) -> None:
        """Turn a materialized view into a table."""
        api.tables.forget_query(self.table(schema, identifier), self.options)

    def kind(self, schema: str, identifier: str) -> str | None:
        """"table", "view", or None if there is neither; also for names of other things, such as a source that is a folder of files."""
        found = self.catalog.kind_of((schema, identifier))
        return str(found.value) if found else None

    def drop(self, schema: str, identifier: str) -> None:
        """Drop a table or view; no error if there is none."""
        name = RelationName(schema, identifier)
        if self.kind(schema, identifier) == "view":
            self.catalog.drop_view(name, if_exists=True)
        elif self.kind(schema, identifier) == "table":
            self._lakehouse.drop_table(str(name))

    @property
    def moves_tables(self) -> bool:
        """True if a table can be renamed, or can replace another one, in one step."""
        return self.storage.local_path() is not None

    def vacate(self, schema: str, identifier: str, may_go: Callable[[], None]) -> None:
        """Drop the current relation before a table takes its name; `may_go` raises if a table must stay.

        Raises `ChangedSinceReadError` if the new rows were computed from an older state of that table.
        """
        if self.kind(schema, identifier) != "table":
            self.drop(schema, identifier)
            return
        expected = self.expected(schema, identifier)
        with self.locked(schema, identifier):
            if expected is not None:
                api.tables.check_unchanged(self.look(schema, identifier).state, expected)
            may_go()
            self.drop(schema, identifier)

    def rows(self, schema: str, identifier: str) -> DataFrame:
        """The table's newest rows as a DataFrame, with softly deleted ones and their deletion time."""
        return self.table(schema, identifier).dataframe(deleted=True)

    def delete_softly(self, schema: str, identifier: str) -> None:
        """Keep rows that are deleted from now on."""
        api.tables.delete_softly(self.table(schema, identifier), self.options)

    # functions

    def create_function(self, schema: str, identifier: str, function: StoredFunction) -> None:
        """Store a function, after the session has accepted it."""
        self._lakehouse.create_function(str(RelationName(schema, identifier)), function)

    def drop_function(self, schema: str, identifier: str) -> None:
        self._lakehouse.drop_function(str(RelationName(schema, identifier)), if_exists=True)

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Raises `TableError` for a table whose storage cannot move tables."""
        if self.kind(*source) == "view":
            self.catalog.rename_view(RelationName(*source), RelationName(*target))
        else:
            self._lakehouse.rename_table(str(RelationName(*source)), str(RelationName(*target)))

    # views and comments

    def check_view(self, schema: str, identifier: str, columns: Sequence[str]) -> None:
        """Raise `SqlError` for a name that a view cannot have, and `SchemaIncompatibleError` for two columns of one name."""
        name = RelationName.of((schema, identifier))
        api.types.check_differ(columns, f" of the view {name}")

    def create_view(self, schema: str, identifier: str, sql: str) -> None:
        self.catalog.create_view(RelationName(schema, identifier), sql, or_replace=True)

    def set_comments(self, schema: str, identifier: str, comment: str | None, columns: Mapping[str, str]) -> None:
        self.catalog.set_comments(RelationName(schema, identifier), comment, columns)

    def comments(self, schema: str, identifier: str) -> tuple[str | None, Mapping[str, str]]:
        found = self.catalog.comments(RelationName(schema, identifier))
        return found.comment, found.columns

    # tables

    def table(self, schema: str, identifier: str) -> HoodieTable:
        return self._lakehouse.table(str(RelationName(schema, identifier)))

    def look(self, schema: str, identifier: str) -> StoredTable:
        """What the table stores now."""
        return StoredTable(self.table(schema, identifier).seen, self.options)

    def unopened(self, schema: str, identifier: str) -> Unopened:
        """The table, opened for repair: it may be unreadable."""
        return Unopened(self._lakehouse, str(RelationName(schema, identifier)))

    def computed_once(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """A frame that computes the rows of another one once, for the duration of the context."""
        return api.frames.computed_once(rows, self.options)

    def is_known_empty(self, rows: DataFrame) -> bool:
        """True if Spark's plan of a frame proves that it has no rows; False if only running it can tell."""
        return api.frames.is_known_empty(rows)

    def stored_rows(self, schema: str, identifier: str, where: str | None = None, called: str = "") -> DataFrame:
        """The table's newest rows with meta columns, as a DataFrame; at least those that match the condition `where`, in which the table is
        named `called`.
        """
        if self._reading is not None:
            return self._reading.stored_rows((schema, identifier), where, called)
        return self.table(schema, identifier).dataframe(meta_columns=True)

    def moment(self, schema: str, identifier: str, point: str) -> str:
        """Instant of the table for an instant, date, timestamp, savepoint name or `-N`."""
        return api.tables.moment(self.look(schema, identifier).state, point)

    def identity_anew(self, shape: TableShape, given: Mapping[str, str]) -> tuple[str, ...]:
        """`StoredTable.identity` for a table that is made with the options of the write."""
        return api.tables.identity_anew(shape.record_key, shape.partition_by, {**self.options, **given})

    def keeps_newest_anew(self, given: Mapping[str, str]) -> bool:
        """`StoredTable.keeps_newest` for a new table that has an ordering field and the options of the write."""
        return api.tables.keeps_newest_anew({**self.options, **given})

    def limit(self, schema: str, identifier: str, lengths: Mapping[str, int | None], *, only_longer: bool = False) -> bool:
        """Limit text columns to a number of characters (None removes the limit); `only_longer` changes a limit only if the new one is
        longer. Returns whether a limit had to change.
        """
        if not lengths:
            return False
        return api.tables.limit(self.look(schema, identifier).state, lengths, self.options, only_longer=only_longer)

    def create_filled(
        self,
        schema: str,
        identifier: str,
        rows: Any,
        shape: TableShape,
        write_options: Mapping[str, str],
        metadata: Mapping[str, str],
        lengths: Mapping[str, int | None] | None = None,
        may_go: Callable[[], None] | None = None,
        build: str | None = None,
    ) -> WriteResult:
        """A new table that holds `rows`, with text columns of those `lengths`; it is there when it is whole. `build`: what that is known by
        of which these rows are the first, where it has several commits (`builds.begin_build`).

        With `may_go` it takes the place of whatever has its name, a table in one step; it raises where that table must stay. Raises
        `TableExistsError` without it, and `ChangedSinceReadError` where the new rows rest on what the table is no more.
        """
        given = creation.layout(shape, {key: value for key, value in write_options.items() if key.startswith(KEPT_OPTIONS)})

        def fill(place: Storage, name: RelationName) -> WriteResult:
            table = api.tables.made_in(place, name.name, rows.schema, given, spark=self.spark, options=self.options)
            if build is not None:
                builds.begin_build(self, table, build)
            return creation.fill(table, rows, write_options, metadata, lengths or {}, self.options)

        name, timeout = RelationName(schema, identifier), lock_timeout(self.options)
        replacing = None if may_go is None else creation.replacing(self, name, may_go)
        _, result = api.warehouse.make_filled(self.catalog, name, fill, may_go=replacing, lock_timeout_ms=timeout)
        return result


def _table_kind(query: str | None) -> str:
    return "table" if query is None else "materialized_view"
