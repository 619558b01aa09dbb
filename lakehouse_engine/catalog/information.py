"""`information_schema`: the warehouse's content as relations that queries can read.

Columns are those of Databricks (https://docs.databricks.com/sql/language-manual/sql-ref-information-schema.html), as far as a warehouse
without users has them. `table_type` uses the words of ISO 9075-11 (`BASE TABLE`, `VIEW`), which packages look for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.names import CATALOG_PREFIX, RelationName
from lakehouse_engine.errors import LakehouseError, RelationNotFoundError

INFORMATION_SCHEMA = "information_schema"

TABLES = pa.schema([
    *((name, pa.string()) for name in ("table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into")),
    *((name, pa.string()) for name in ("comment", "data_source_format", "storage_path")),
])  # fmt: skip
COLUMNS = pa.schema([
    *((name, pa.string()) for name in ("table_catalog", "table_schema", "table_name", "column_name")),
    ("ordinal_position", pa.int32()),
    *((name, pa.string()) for name in ("column_default", "is_nullable", "full_data_type", "data_type")),
    *((name, pa.int32()) for name in ("character_maximum_length", "numeric_precision", "numeric_scale", "partition_index")),
    *((name, pa.string()) for name in ("is_generated", "generation_expression", "comment")),
])  # fmt: skip
SCHEMATA = pa.schema([(name, pa.string()) for name in ("catalog_name", "schema_name", "comment")])
VIEWS = pa.schema([
    (name, pa.string()) for name in ("table_catalog", "table_schema", "table_name", "view_definition", "check_option", "is_updatable")
])

_NUMBERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "float": 24, "double": 53}
"""Digits of Spark's number types: decimal digits, binary ones for the last two."""

Wanted = Callable[[pa.Table], pa.Table]
"""Filters rows by some of their columns, before the other columns are computed."""


@dataclass(frozen=True, slots=True)
class Described:
    """A column of a table or view. `type`, `default` and `generated` are in CREATE TABLE syntax.

    `partition_index` counts from 1; None if it is no partition column.
    """

    name: str
    type: str
    nullable: bool = True
    partition_index: int | None = None
    default: str | None = None
    generated: str | None = None


Describe = Callable[[RelationName, RelationKind], Sequence[Described]]


def information_relation(catalog: Catalog, parts: tuple[str, ...]) -> str | None:
    """Relation of information_schema that a name means, if any: `information_schema.tables`, also behind a catalog's name.

    A warehouse has one catalog, named `spark_catalog`. Statements written for several catalogs put a schema there, or `None`, which dbt
    prints for a target without a database.
    """
    folded = tuple(part.lower() for part in parts)
    if len(folded) not in (2, 3) or folded[-2] != INFORMATION_SCHEMA or folded[-1] not in _MADE:
        return None
    if len(folded) == 3 and folded[0] not in (CATALOG_PREFIX, "none", *(name.lower() for name in catalog.schemas())):
        return None
    return folded[-1]


def information_rows(catalog: Catalog, relation: str, location: str, described: Describe, wanted: Wanted) -> pa.Table:
    """Rows of a relation of information_schema; at least those that `wanted` accepts by name. `location` is the warehouse's."""
    return _MADE[relation](catalog, location, described, wanted)


def _listed(catalog: Catalog, wanted: Wanted) -> list[tuple[RelationName, RelationKind]]:
    found = [(name, RelationKind.TABLE) for name in catalog.tables()] + [(name, RelationKind.VIEW) for name in catalog.views()]
    found.sort()
    names = pa.table({
        "table_catalog": pa.array([CATALOG_PREFIX] * len(found), pa.string()),
        "table_schema": pa.array([name.schema for name, _ in found], pa.string()),
        "table_name": pa.array([name.name for name, _ in found], pa.string()),
        "__number": pa.array(range(len(found)), pa.int64()),
    })  # fmt: skip
    return [found[number] for number in wanted(names).column("__number").to_pylist()]


def _tables(catalog: Catalog, location: str, described: Describe, wanted: Wanted) -> pa.Table:
    def made(name: RelationName, kind: RelationKind) -> pa.Table:
        is_table = kind is RelationKind.TABLE
        is_kept = is_table and catalog.materialized_query(name) is not None
        return _table(TABLES, {
            "table_catalog": [CATALOG_PREFIX],
            "table_schema": [name.schema],
            "table_name": [name.name],
            "table_type": ["MATERIALIZED VIEW" if is_kept else "BASE TABLE" if is_table else "VIEW"],
            "is_insertable_into": ["YES" if is_table and not is_kept else "NO"],
            "comment": [_comment(catalog, name, kind)],
            "data_source_format": ["HUDI" if is_table else None],
            "storage_path": [f"{location}/{name.path}" if is_table else None],
        })  # fmt: skip

    return _of_each(catalog, _listed(catalog, wanted), made, TABLES)


def _of_each(
    catalog: Catalog,
    listed: Sequence[tuple[RelationName, RelationKind]],
    made: Callable[[RelationName, RelationKind], pa.Table],
    schema: pa.Schema,
) -> pa.Table:
    """Result for each relation, except those dropped since they were listed."""

    def unless_gone(name: RelationName, kind: RelationKind) -> pa.Table:
        try:
            return made(name, kind)
        except LakehouseError:
            if catalog.find(name) == (name, kind):
                raise
            return schema.empty_table()

    return pa.concat_tables([schema.empty_table(), *(unless_gone(name, kind) for name, kind in listed)])


def _comment(catalog: Catalog, name: RelationName, kind: RelationKind) -> str | None:
    comment = catalog.comments(name).comment
    return catalog.view(name).comment if comment is None and kind is RelationKind.VIEW else comment


def _columns(catalog: Catalog, location: str, described: Describe, wanted: Wanted) -> pa.Table:
    def made(name: RelationName, kind: RelationKind) -> pa.Table:
        return _columns_of(catalog, name, kind, described(name, kind))

    return _of_each(catalog, _listed(catalog, wanted), made, COLUMNS)


def _columns_of(catalog: Catalog, name: RelationName, kind: RelationKind, found: Sequence[Described]) -> pa.Table:
    comments = dict(catalog.comments(name).columns)
    if kind is RelationKind.VIEW:
        comments = {**{column: text for column, text in catalog.view(name).columns if text}, **comments}
    sizes = [_sizes(one.type) for one in found]
    return _table(COLUMNS, {
        "table_catalog": [CATALOG_PREFIX] * len(found),
        "table_schema": [name.schema] * len(found),
        "table_name": [name.name] * len(found),
        "column_name": [one.name for one in found],
        "ordinal_position": range(1, len(found) + 1),
        "column_default": [one.default for one in found],
        "is_nullable": ["YES" if one.nullable else "NO" for one in found],
        "full_data_type": [one.type for one in found],
        "data_type": [one.type.partition("(")[0].partition("<")[0].upper() for one in found],
        "character_maximum_length": [length for length, _, _ in sizes],
        "numeric_precision": [precision for _, precision, _ in sizes],
        "numeric_scale": [scale for _, _, scale in sizes],
        "partition_index": [one.partition_index for one in found],
        "is_generated": ["NEVER" if one.generated is None else "ALWAYS" for one in found],
        "generation_expression": [one.generated for one in found],
        "comment": [comments.get(one.name) for one in found],
    })  # fmt: skip


def _sizes(kind: str) -> tuple[int | None, int | None, int | None]:
    """Length of a text type, precision and scale of a number type."""
    name, _, rest = kind.partition("(")
    given = [int(one) for one in rest.rstrip(")").split(",")] if rest and "<" not in kind else []
    if name == "varchar" and given:
        return given[0], None, None
    if name == "decimal" and len(given) == 2:
        return None, given[0], given[1]
    precision = _NUMBERS.get(kind)
    return None, precision, None if precision is None or kind in ("float", "double") else 0


def _schemata(catalog: Catalog, location: str, described: Describe, wanted: Wanted) -> pa.Table:
    found = {}
    for name in catalog.schemas():
        with suppress(RelationNotFoundError):  # dropped since it was listed
            found[name] = catalog.schema_comment(name)
    return _table(SCHEMATA, {"catalog_name": [CATALOG_PREFIX] * len(found), "schema_name": [*found], "comment": found.values()})


def _views(catalog: Catalog, location: str, described: Describe, wanted: Wanted) -> pa.Table:
    def made(name: RelationName, kind: RelationKind) -> pa.Table:
        return _table(VIEWS, {
            "table_catalog": [CATALOG_PREFIX],
            "table_schema": [name.schema],
            "table_name": [name.name],
            "view_definition": [catalog.view(name).sql],
            "check_option": ["NONE"],
            "is_updatable": ["NO"],
        })  # fmt: skip

    listed = [(name, kind) for name, kind in _listed(catalog, wanted) if kind is RelationKind.VIEW]
    return _of_each(catalog, listed, made, VIEWS)


def _table(schema: pa.Schema, columns: Mapping[str, Iterable[object]]) -> pa.Table:
    return pa.table([pa.array(list(columns[field.name]), field.type) for field in schema], schema=schema)


_MADE: dict[str, Callable[[Catalog, str, Describe, Wanted], pa.Table]] = {
    "tables": _tables,
    "columns": _columns,
    "schemata": _schemata,
    "views": _views,
}
