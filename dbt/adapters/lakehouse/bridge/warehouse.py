"""A warehouse as the adapter uses it, from one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.bridge import builds, making
from dbt.adapters.lakehouse.bridge.outcomes import table_type_of
from dbt.adapters.lakehouse.bridge.shapes import HeldTables, TableShape, Unopened
from lakehouse_engine import api
from lakehouse_engine.api.errors import SqlError
from lakehouse_engine.api.names import RelationName, split_name
from lakehouse_engine.api.options import lock_timeout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse_engine.api.statements import Reading
    from lakehouse_engine.api.tables import ExpectedState, HoodieTable
    from lakehouse_engine.api.warehouse import Catalog, Lakehouse, StagingArea, Storage, StoredFunction, WriteResult

KEPT_OPTIONS = ("hoodie.index.type", "hoodie.bucket.index.", "hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class")
"""Options that a table keeps from its creation on: whoever else writes or reads it has to do it by the same rules."""
_HIDDEN = ".lakehouse"
"""The folder of a warehouse for what no reader shall see."""


def load() -> tuple[object, ...]:
    """Import what statements use, ahead of the first one; without it seeds and operations load no PySpark."""
    return api.statements, api.frames, api.warehouse, api.tables, api.types, api.sql


class Warehouse:
    """A warehouse, seen from one thread. Raises the engine's errors; `spark` is None where only metadata is asked for.

    `options` are the profile's defaults for every table; without `allow_files` SQL on files is refused. `storage_options` are of an object
    store. `held`: tables that are not what others see under their names. `catalogs`: other warehouses by name, as `Lakehouse` takes them,
    and `catalog` the name of this one.
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
        """That of a warehouse whose rows are asked for."""
        if self.spark is None:
            raise RuntimeError(f"the warehouse {self.root} was opened without a Spark session")
        return self.spark

    @cached_property
    def storage(self) -> Storage:
        """That of the whole warehouse, in which nothing is held back."""
        return api.warehouse.storage_for(self.root, self.storage_options)

    def check_usable(self) -> None:
        """Raise `UnusablePlaceError` where no warehouse can be made or written to; nothing is left of the attempt."""
        api.warehouse.check_usable(self.storage)

    @cached_property
    def catalog(self) -> Catalog:
        return self._lakehouse.catalog if self._held else api.warehouse.Catalog(self.storage)

    def holding(self, held: HeldTables) -> Warehouse:
        """The same warehouse, seen with tables that are held back."""
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
        """An attached warehouse, whose metadata are asked for."""
        place = self.catalogs[name]
        return Warehouse(place["warehouse"], options=self.options, storage_options=place["storage_options"], catalog=name)

    def keep_rows(self, rows: Any, folder: str) -> Callable[[Warehouse], Any]:
        """Keep the rows of a frame in a folder of the warehouse; how another session comes by them. Arrow tables stay in memory."""
        if not hasattr(rows, "toArrow"):
            return lambda house: rows
        found = api.frames.keep_rows(rows, self.storage, folder)
        return lambda house: found(house.session)

    def resting_on(self, schema: str, identifier: str, state: ExpectedState) -> Warehouse:
        """The same warehouse, for a write of rows that rest on a state of one table, as `expected` or `hold` answered it."""
        found = copy(self)
        found._rests_on = {RelationName(schema, identifier): state}
        return found

    def hold(self, schema: str, identifier: str, folder: str) -> ExpectedState:
        """Put a copy of a table below `folder` of the warehouse, sharing its files; the state that it is of."""
        return self._lakehouse.copy_table(str(RelationName(schema, identifier)), folder)

    def let_go(self, folder: str) -> None:
        """Delete a folder of the warehouse that a copy is in."""
        self.storage.delete_tree(folder)

    def check_held(self, schema: str, identifier: str, state: ExpectedState) -> None:
        """Raise `ChangedSinceReadError` where a table is not any more what `hold` answered."""
        api.tables.check_unchanged(self.table(schema, identifier), state)

    def staging_area(self) -> StagingArea:
        """A hidden folder of the warehouse for this process. Those of processes that are gone are removed."""
        return api.warehouse.staging_area(self.storage, _HIDDEN)

    def remove_dead_stages(self) -> None:
        """Remove what processes that are gone have left in hidden folders of the warehouse."""
        api.warehouse.remove_dead_stages(self.storage, _HIDDEN)

    def newest_write(self, schema: str, identifier: str) -> str | None:
        """The instant of a table's newest write; None where there is no table, or no write."""
        return api.tables.newest_write(self.table(schema, identifier)) if self.kind(schema, identifier) == "table" else None

    def pinned(self) -> Warehouse:
        """The same warehouse, for statements that belong together: each table that they read is at one state for all of them."""
        found = copy(self)
        found._reading = self._lakehouse.reading()
        return found

    def locked(self, schema: str, identifier: str) -> AbstractContextManager[Any]:
        """The table's lock, for a reading and a write that nobody may come between; the write takes it again."""
        return api.tables.lock(self.table(schema, identifier), self.options)

    def expected(self, schema: str, identifier: str) -> ExpectedState | None:
        """What was read of a table since `pinned`, as an argument of its writes; None where it was not read."""
        if (rests_on := self._rests_on.get(RelationName(schema, identifier))) is not None:
            return rests_on
        if self._reading is None or self.kind(schema, identifier) != "table":
            return None
        return self._reading.expected((schema, identifier))

    def wrote(self, schema: str, identifier: str, instant: str) -> None:
        """Say that a table has a write of one's own since it was read."""
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
        except SqlError:
            return None  # Spark says what is wrong with it
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
        """(identifier, "table", "materialized_view", "view" or "function") of everything in a schema; nothing for one that is not there.

        A function that has the name of a relation is left out.
        """
        found = self.catalog.find_schema(schema)
        if found is None:
            return []
        tables = [(name.name, self._table_kind(name)) for name in self.catalog.tables(found)]
        names = tables + [(name.name, "view") for name in self.catalog.views(found)]
        taken = {name.lower() for name, _ in names}
        functions = api.warehouse.Functions(self.catalog).names(found)
        return sorted(names + [(name.name, "function") for name in functions if name.name.lower() not in taken])

    def _table_kind(self, name: RelationName) -> str:
        return "table" if self.catalog.materialized_query(name) is None else "materialized_view"

    def told_kind(self, schema: str, identifier: str) -> str | None:
        """As `kind`, but that materialized views, which are tables, are told from the others."""
        kind = self.kind(schema, identifier)
        return self._table_kind(self.catalog.table(RelationName(schema, identifier))) if kind == "table" else kind

    def forget_query(self, schema: str, identifier: str) -> None:
        """A materialized view is a table from now on."""
        api.tables.forget_query(self.table(schema, identifier), self.options)

    def stored_options(self, schema: str, identifier: str) -> Mapping[str, str]:
        """Options that a table keeps as defaults of its writes, and those that it keeps for its life."""
        return api.tables.stored_options(self.table(schema, identifier))

    def kind(self, schema: str, identifier: str) -> str | None:
        """ "table", "view", or None where there is neither; also for names of other things, as a source that is a folder of files."""
        found = self.catalog.kind_of((schema, identifier))
        return str(found.value) if found else None

    def drop(self, schema: str, identifier: str) -> None:
        """Drop a table or view; nothing happens when there is neither."""
        name = RelationName(schema, identifier)
        if self.kind(schema, identifier) == "view":
            self.catalog.drop_view(name, if_exists=True)
        elif self.kind(schema, identifier) == "table":
            self._lakehouse.drop_table(str(name))

    @property
    def moves_tables(self) -> bool:
        """Whether a table can get another name, or the place of another one, in one step."""
        return self.storage.local_path() is not None

    def vacate(self, schema: str, identifier: str, may_go: Callable[[], None]) -> None:
        """Drop what has a name, for a table that will have it; `may_go` raises where a table must stay.

        Raises `ChangedSinceReadError` where the new rows rest on what the table is no more.
        """
        if self.kind(schema, identifier) != "table":
            self.drop(schema, identifier)
            return
        expected = self.expected(schema, identifier)
        with self.locked(schema, identifier):
            if expected is not None:
                api.tables.check_unchanged(self.table(schema, identifier), expected)
            may_go()
            self.drop(schema, identifier)

    def rows(self, schema: str, identifier: str) -> DataFrame:
        """The table's newest rows, as a DataFrame; with those that were deleted softly, and when."""
        return self.table(schema, identifier).dataframe(deleted=True)

    def delete_softly(self, schema: str, identifier: str) -> None:
        """Rows that are deleted stay from now on."""
        api.tables.delete_softly(self.table(schema, identifier), self.options)

    # functions

    def create_function(self, schema: str, identifier: str, function: StoredFunction) -> None:
        """Store a function, once the session could make it."""
        self._lakehouse.create_function(str(RelationName(schema, identifier)), function)

    def drop_function(self, schema: str, identifier: str) -> None:
        self._lakehouse.drop_function(str(RelationName(schema, identifier)), if_exists=True)

    def rename(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Raises `TableError` for a table where tables cannot be moved."""
        if self.kind(*source) == "view":
            self.catalog.rename_view(RelationName(*source), RelationName(*target))
        else:
            self._lakehouse.rename_table(str(RelationName(*source)), str(RelationName(*target)))

    # views and comments

    def check_view(self, schema: str, identifier: str, columns: Sequence[str]) -> None:
        """Raise `SqlError` for a name that no view can have, and `SchemaIncompatibleError` for two columns of one name."""
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

    def unopened(self, schema: str, identifier: str) -> Unopened:
        """The table as something to be repaired: what cannot be read of it may be why."""
        return Unopened(self._lakehouse, str(RelationName(schema, identifier)))

    def computed_once(self, rows: DataFrame) -> AbstractContextManager[DataFrame]:
        """A frame that computes the rows of another one once, for as long as this lasts."""
        return api.frames.computed_once(rows, self.options)

    def is_known_empty(self, rows: DataFrame) -> bool:
        """Whether a frame has no rows, as Spark's plan of it says; False where only running it tells."""
        return api.frames.is_known_empty(rows)

    def stored_rows(self, schema: str, identifier: str, where: str | None = None, called: str = "") -> DataFrame:
        """The table's newest rows with their meta columns, as a DataFrame; at least those for which the condition `where` is true, in which
        the table is called `called`.
        """
        if self._reading is not None:
            return self._reading.stored_rows((schema, identifier), where, called)
        return self.table(schema, identifier).dataframe(meta_columns=True)

    def moment(self, schema: str, identifier: str, point: str) -> str:
        """The instant time of the table that an instant, a date or timestamp, a savepoint's name or `-N` means."""
        return api.tables.moment(self.table(schema, identifier), point)

    def shape(self, schema: str, identifier: str) -> TableShape:
        config = self.table(schema, identifier).config
        return TableShape(
            record_key=config.record_key_fields,
            partition_by=config.partition_fields,
            ordering_fields=config.ordering_fields,
            hive_style=config.hive_style_partitioning,
            table_type=table_type_of(config.table_type),
            deletes_softly=config.deletes_softly,
            version=int(config.version),
        )

    def identity_anew(self, shape: TableShape, given: Mapping[str, str]) -> tuple[str, ...]:
        """As `identity`, of a table that is made with the options of the write."""
        return api.tables.identity_anew(shape.record_key, shape.partition_by, {**self.options, **given})

    def keeps_index(self, schema: str, identifier: str, given: Mapping[str, str]) -> bool:
        """Whether a write with the options `given` finds every key where the table keeps it: in its bucket, in whichever partition."""
        return api.tables.keeps_index(self.table(schema, identifier), {**self.options, **given})

    def identity(self, schema: str, identifier: str, given: Mapping[str, str]) -> tuple[str, ...]:
        """The columns by which a row is the same record as a stored one: the record key, with the partition columns where the index
        keeps a key unique in its partition only. `given` are the options of the write.
        """
        return api.tables.identity(self.table(schema, identifier), {**self.options, **given})

    def limit(self, schema: str, identifier: str, lengths: Mapping[str, int | None], *, only_longer: bool = False) -> None:
        """Let text columns hold so many characters and no more (None: any number); with `only_longer` where that is more than now."""
        if lengths:
            api.tables.limit(self.table(schema, identifier), lengths, self.options, only_longer=only_longer)

    def generated(self, schema: str, identifier: str) -> list[str]:
        """The generated columns of a table."""
        return api.tables.generated_columns(self.table(schema, identifier))

    def computable(self, schema: str, identifier: str, columns: Iterable[str]) -> dict[str, str]:
        """Generated columns of a table that are not among `columns`, where all that they are computed of is, with their types."""
        return api.tables.computable(self.table(schema, identifier), columns)

    def computed(self, schema: str, identifier: str, rows: DataFrame) -> DataFrame:
        """The rows of a frame with such columns."""
        return api.tables.computed(self.table(schema, identifier), rows)

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
        given = making.layout(shape, {key: value for key, value in write_options.items() if key.startswith(KEPT_OPTIONS)})

        def fill(place: Storage, name: RelationName) -> WriteResult:
            table = api.tables.made_in(place, name.name, rows.schema, given, spark=self.spark, options=self.options)
            if build is not None:
                builds.begin_build(self, table, build)
            return making.fill(table, rows, write_options, metadata, lengths or {}, self.options)

        name, timeout = RelationName(schema, identifier), lock_timeout(self.options)
        replacing = None if may_go is None else making.replacing(self, name, may_go)
        _, result = api.warehouse.make_filled(self.catalog, name, fill, may_go=replacing, lock_timeout_ms=timeout)
        return result
