"""Answers dbt from the warehouse's directory, without Spark: schemas, relations, columns, documentation, freshness, points in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dbt.adapters.base import available
from dbt.adapters.base.impl import BaseAdapter, FreshnessResponse
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import SparkAdapter
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.lakehouse.bridge import builds
from dbt.adapters.lakehouse.bridge.shapes import HeldTables
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.column import LakehouseColumn
from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.connections import LakehouseConnectionManager
from dbt.adapters.lakehouse.reading import travel
from dbt.adapters.lakehouse.reading.catalog import CatalogEntry, catalog_table
from dbt.adapters.lakehouse.reading.event_time import bounds
from dbt.adapters.lakehouse.reading.introspection import Introspection
from dbt.adapters.lakehouse.relation import LakehouseRelation
from dbt.adapters.lakehouse.work.audit_registry import held_tables

if TYPE_CHECKING:
    import agate

Result = TypeVar("Result")
logger = AdapterLogger("Lakehouse")


class WarehouseAdapter(SparkAdapter):
    """The reading part of the adapter. It asks the engine where dbt-spark asks Spark's catalog."""

    Relation = LakehouseRelation
    Column = LakehouseColumn
    ConnectionManager = LakehouseConnectionManager  # type: ignore[assignment]  # dbt-spark names its own class as the type
    connections: LakehouseConnectionManager
    _files_by_name: Mapping[tuple[str, str], LakehouseRelation] = MappingProxyType({})
    """Sources that read files, by schema and identifier."""

    @property
    def _files(self) -> Warehouse:
        connection = self.connections.get_if_exists()
        return self._house(held_tables(str(connection.name)) if connection else None)

    def _house(self, held: HeldTables | None = None) -> Warehouse:
        given = self.config.credentials
        catalogs = {name: place.given for name, place in given.catalogs.items()}
        return Warehouse(
            given.warehouse,
            options=given.hoodie,
            storage_options=given.storage_options,
            held=held,
            catalog=given.catalog,
            catalogs=catalogs,
        )

    def _metadata(self, database: str | None) -> Introspection:
        """Metadata of the warehouse, or of the attached one named by `database`."""
        name = self._attached_name(database)
        return Introspection(self._files if name is None else self._files.attached(name), self.connections)

    def _attached_name(self, database: str | None) -> str | None:
        """Attached catalog of this name, which may be quoted; None for any other name, which means the warehouse itself."""
        name = str(database or "").strip("`").lower()
        return name if name in self.Relation.around.attached else None

    def _ask(self, question: Callable[[Introspection], Result], database: str | None = None) -> Result:
        with self.connections.exception_handler("metadata"):
            return question(self._metadata(database))

    def _change(self, relation: LakehouseRelation, change: Callable[[Introspection], Result]) -> Result:
        """Change the warehouse. Raises `DbtDatabaseError` for a relation of an attached one."""
        if relation.is_attached:
            raise DbtDatabaseError(f"{relation}: {relation.database} is attached to be read only: nothing was changed")
        return self._ask(change)

    # -- sources that read files

    def know_files(self, sources: Iterable[Any]) -> None:
        """Register the project's sources that read files. Raises `DbtConfigError` with everything that is wrong with them."""
        found = [self.Relation.create_from(self.config, source) for source in sources]
        if wrong := [one.wrong for one in found if one.wrong]:
            raise DbtConfigError("\n".join(wrong))
        self._files_by_name = {_named(one): one for one in found if one.files is not None}

    def get_relation(self, database: str | None, schema: str, identifier: str) -> LakehouseRelation | None:
        """A relation of the warehouse or an attached one, or the file source of that name."""
        if (name := self._attached_name(database)) is not None:
            return cast(LakehouseRelation | None, BaseAdapter.get_relation(self, name, schema, identifier))
        ours = super().get_relation(None, schema, identifier)  # type: ignore[arg-type]  # as packages call it
        return cast(LakehouseRelation | None, ours) or self._files_by_name.get((schema.lower(), identifier.lower()))

    # -- builds in several commits

    def is_unfinished(self, relation: LakehouseRelation, unique_id: str) -> bool:
        """True if a build of a microbatch model's table was killed and has to be repeated."""
        build = builds.build_of(get_invocation_id(), unique_id)
        return self._ask(lambda found: builds.is_unfinished(found.warehouse, *relation.stored, build))

    def begin_build(self, relation: LakehouseRelation, unique_id: str) -> None:
        """Start to repeat a killed build."""
        schema, identifier, build = *relation.stored, builds.build_of(get_invocation_id(), unique_id)
        self._ask(lambda found: builds.begin_build(found.warehouse, found.warehouse.table(schema, identifier), build))

    def forget_undone_build(self, relation: LakehouseRelation) -> None:
        """Forget a build that left nothing in the table."""
        self._ask(lambda found: builds.forget_undone_build(found.warehouse, *relation.stored))

    def end_build(self, relation: LakehouseRelation, unique_id: str, *, whole: bool) -> None:
        """Mark a microbatch build as finished, or (not `whole`) as stopped early."""
        schema, identifier, build = *relation.stored, builds.build_of(get_invocation_id(), unique_id)
        self._ask(lambda found: builds.end_build(found.warehouse, schema, identifier, build, whole=whole))

    # -- schemas and relations

    def list_schemas(self, database: str | None) -> list[str]:
        return self._ask(lambda metadata: metadata.warehouse.schemas(), database)

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str | None, schema: str) -> bool:
        return schema.lower() in (name.lower() for name in self.list_schemas(database))

    @available.parse_none
    def create_schema(self, relation: LakehouseRelation) -> None:
        self._change(relation, lambda metadata: metadata.warehouse.create_schema(str(relation.schema)))

    @available.parse_none
    def drop_schema(self, relation: LakehouseRelation) -> None:
        self._change(relation, lambda metadata: metadata.warehouse.drop_schema(str(relation.schema)))
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations(self, database: str | None, schema: str) -> list[LakehouseRelation]:
        """Name of an attached catalog, or empty. Packages pass `spark_catalog`, whose relations dbt's cache would keep apart."""
        return cast(list[LakehouseRelation], super().list_relations(self._attached_name(database), schema))

    def list_relations_without_caching(self, schema_relation: LakehouseRelation) -> list[LakehouseRelation]:
        schema, database = str(schema_relation.schema), schema_relation.database
        found = self._ask(lambda metadata: metadata.warehouse.relations(schema), database)
        return [self._relation(schema, name, kind, database) for name, kind in found]

    @available.parse_none
    def stored_relation(self, relation: LakehouseRelation) -> LakehouseRelation | None:
        """Current relation of a name, from the warehouse; hooks change it without updating dbt's cache."""
        kind = self._ask(lambda metadata: metadata.warehouse.told_kind(*relation.stored), relation.database)
        return self._relation(*relation.stored, kind, relation.database) if kind else None

    def _relation(self, schema: str, identifier: str, kind: str, database: str | None = None) -> LakehouseRelation:
        return self.Relation.create(
            database=database, schema=schema, identifier=identifier, type=RelationType(kind), quote_policy=self.config.quoting
        )

    @available.parse_list
    def get_columns_in_relation(self, relation: LakehouseRelation) -> list[LakehouseColumn]:
        if not relation.is_temporary and not relation.is_attached:  # as a unit test names the source for which it has rows
            relation = self._files_by_name.get(_named(relation), relation)
        columns = self._ask(lambda metadata: metadata.columns(relation), relation.database)
        return [
            LakehouseColumn(column=name, dtype=kind, table_schema=relation.schema, table_name=relation.identifier, column_index=position)
            for position, (name, kind) in enumerate(columns)
        ]

    def _types_of(self, relation: LakehouseRelation) -> dict[str, str]:
        """Spark types of stored columns by lower-case name; empty for a relation that does not exist, or exists only in a session."""
        if relation.is_temporary:
            return {}
        whole = relation.replace(event_time_filter=None, limit=None)  # the caller renders the filter
        return {one.column.lower(): one.dtype for one in self.get_columns_in_relation(whole)}

    @available.parse_none
    def batch_range(self, stored: LakehouseRelation | None, event_time: str, start: Any, end: Any) -> str | None:
        """Condition for a batch's time range on a stored table's column, or on rows that are not stored (None)."""
        kind = None if stored is None else self._types_of(stored).get(event_time.lower())
        return " and ".join(bounds(quoted(event_time), kind, start, end)) or None

    @available.parse_none
    def drop_relation(self, relation: LakehouseRelation) -> None:
        self._change(relation, lambda metadata: metadata.drop(relation))
        self.cache_dropped(relation)

    @available.parse_none
    def truncate_relation(self, relation: LakehouseRelation) -> None:
        self._change(relation, lambda metadata: metadata.truncate(relation))

    @available.parse_none
    def rename_relation(self, from_relation: LakehouseRelation, to_relation: LakehouseRelation) -> None:
        for relation in (from_relation, to_relation):
            self._change(relation, lambda metadata: None)
        self.cache_renamed(from_relation, to_relation)
        self._ask(lambda metadata: metadata.rename(from_relation, to_relation))

    # -- documentation and freshness

    def get_catalog(self, relation_configs: Iterable[Any], used_schemas: frozenset[tuple[str, str]]) -> tuple[agate.Table, list[Exception]]:
        schemas = sorted({(self._attached_name(database) or "", schema) for database, schema in used_schemas})
        relations = [relation for database, schema in schemas for relation in self.list_relations(database, schema)]
        named = [self.Relation.create_from(self.config, one) for one in relation_configs]
        relations += [relation for relation in named if relation.files is not None]
        return self.get_catalog_by_relations(used_schemas, set(relations))

    def get_filtered_catalog(
        self,
        relation_configs: Iterable[Any],
        used_schemas: frozenset[tuple[str, str]],
        relations: set[LakehouseRelation] | None = None,
    ) -> tuple[agate.Table, list[Exception]]:
        """Catalog rows of the relations. dbt compares database names, but our relations do not carry the warehouse's own."""
        if relations is None:
            return self.get_catalog(relation_configs, used_schemas)
        return self.get_catalog_by_relations(used_schemas, relations)

    def get_catalog_by_relations(
        self, used_schemas: frozenset[tuple[str, str]], relations: set[LakehouseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        entries: list[CatalogEntry] = []
        failures: list[Exception] = []
        with self.connection_named("catalog"):
            for relation in sorted(relations, key=str):
                try:
                    entry = self._entry(relation)
                except DbtRuntimeError as error:  # noqa: PERF203 - one relation that cannot be read must not hide the others
                    logger.warning(f"{relation} is left out of the catalog: {error.msg}")
                    failures.append(error)
                else:
                    entries += [entry] if entry else []
        return catalog_table(entries), failures

    def get_catalog_for_single_relation(self, relation: LakehouseRelation) -> CatalogTable | None:
        entry = self._entry(relation)
        return entry.as_catalog_table() if entry else None

    def _entry(self, relation: LakehouseRelation) -> CatalogEntry | None:
        """Documentation with the manifest's database names."""
        found = self._ask(lambda metadata: metadata.entry(relation), relation.database)
        return found and replace(found, database=relation.database or self.config.credentials.database)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[LakehouseRelation], macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[list[AdapterResponse | None], dict[LakehouseRelation, FreshnessResponse]]:
        """Time of each table's last completed write, without a query."""
        now = datetime.now(timezone.utc)
        written = {source: self._last_write(source) for source in sources}
        return [], {source: self._create_freshness_response(moment, now) for source, moment in written.items()}

    def _last_write(self, source: LakehouseRelation) -> datetime | None:
        return self._ask(lambda metadata: metadata.last_write(source), source.database)

    def calculate_freshness_from_metadata(
        self, source: LakehouseRelation, macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        _, answers = self.calculate_freshness_from_metadata_batch([source], macro_resolver)
        return None, answers[source]

    # -- points in time

    @available.parse(lambda relation, *a, **k: str(relation))
    def relation_at(self, relation: LakehouseRelation, point: Any) -> str:
        """The relation at an instant, a time, or `-N` commits ago."""
        return self._ask(lambda metadata: travel.at(metadata.warehouse, relation, point), relation.database)

    @available.parse(lambda relation, *a, **k: str(relation))
    def relation_changes(self, relation: LakehouseRelation, begin: Any = "earliest", end: Any = None) -> str:
        """The relation's changes after `begin`, up to `end`."""
        return self._ask(lambda metadata: travel.changes(metadata.warehouse, relation, begin, end), relation.database)

    @available.parse(lambda relation, *a, **k: str(relation))
    def relation_read_optimized(self, relation: LakehouseRelation) -> str:
        """Base files of a merge-on-read table; all rows of a copy-on-write table."""
        return travel.read_optimized(relation)

    @available.parse(lambda relation, *a, **k: str(relation))
    def relation_with_deleted(self, relation: LakehouseRelation) -> str:
        """All rows of a table with soft deletes, including deleted ones."""
        return travel.with_deleted(relation)


def _named(relation: LakehouseRelation) -> tuple[str, str]:
    return str(relation.schema).lower(), str(relation.identifier).lower()
