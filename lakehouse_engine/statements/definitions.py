"""CREATE, DROP and ALTER of schemas, views and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from lakehouse_engine.catalog.atomic_create import MayGo, make_filled
from lakehouse_engine.catalog.catalog import RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    MissingOptionError,
    OptionError,
    SqlError,
    UnsupportedSqlError,
)
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.table_config import TableConfig, TableType
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS, OPTIONS, STORED_PREFIX, layered
from lakehouse_engine.record.types import check_differ
from lakehouse_engine.spark.schema import to_arrow_schema
from lakehouse_engine.sql.grammar.statements import (
    Comment,
    CommentOnSchema,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    DropSchema,
    DropTable,
    DropView,
    RenameRelation,
    SetProperties,
    UnsetProperties,
    UseSchema,
)
from lakehouse_engine.sql.grammar.types import arrow_schema, constraints_of
from lakehouse_engine.statements.columns import constrain
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.defaults import check_defaults
from lakehouse_engine.statements.generated import settled
from lakehouse_engine.statements.table_properties import TableProperties
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.alter import set_properties, set_query
from lakehouse_engine.write.create import HIVE_STYLE, TABLE_TYPES, URL_ENCODE, TableSpec

COMBINE = {"hoodie.combine.before.insert": "true"}


def create_schema(run: Execution, statement: CreateSchema) -> None:
    """Create a schema."""
    run.catalog.create_schema(statement.schema, comment=statement.comment, if_not_exists=statement.if_not_exists)


def drop_schema(run: Execution, statement: DropSchema) -> None:
    """Drop a schema; with `CASCADE` also what is in it."""
    run.catalog.drop_schema(statement.schema, cascade=statement.cascade, if_exists=statement.if_exists)


def use_schema(run: Execution, statement: UseSchema) -> None:
    """Set the current schema. Raises `OptionError` if it does not exist."""
    found = run.catalog.find_schema(statement.schema)
    if found is None:
        raise OptionError(f"there is no schema {statement.schema}; the warehouse has {', '.join(run.catalog.schemas()) or 'none'}")
    run.pins.current_schema = found


def create_view(run: Execution, statement: CreateView) -> None:
    """Store a view after Spark has analysed its query, so that unreadable views and duplicate column names are refused."""
    if run.args:
        raise UnsupportedSqlError("the query of a view is kept as it is; write values in the place of its parameters")
    rows = run.query(statement.query)
    name = run.pins.name(statement.name)
    columns = [column for column, _ in statement.columns] or rows.columns
    if len(columns) != len(rows.columns):
        raise SqlError(f"the view {name} names {len(columns)} columns, and its query gives {len(rows.columns)}", relation=name)
    check_differ(columns, f" of the view {name}")
    run.catalog.create_view(
        name,
        statement.query,
        columns=statement.columns,
        comment=statement.comment,
        or_replace=statement.or_replace,
        if_not_exists=statement.if_not_exists,
    )


def drop_view(run: Execution, statement: DropView) -> None:
    """Drop a stored view."""
    run.catalog.drop_view(run.pins.name(statement.name), if_exists=statement.if_exists)


def drop_table(run: Execution, statement: DropTable) -> None:
    """Drop a table with its rows."""
    run.catalog.drop_table(run.pins.name(statement.name), if_exists=statement.if_exists)


def create_table(run: Execution, statement: CreateTable) -> Any:
    """With a query, its rows fill the new table, or (OR REPLACE) replace the old one's in one commit."""
    name = run.pins.name(statement.name)
    found = run.catalog.find(name)
    if found is not None and statement.if_not_exists:
        return None
    frame = run.query(statement.query) if statement.query is not None else None
    schema = to_arrow_schema(frame.schema) if frame is not None else arrow_schema(statement.columns)
    spec = table_spec(name, statement, schema)
    check_defaults(run, name, spec.constraints, schema)
    spec = replace(spec, constraints=settled(run, name, spec))
    if found is not None and statement.or_replace and found[1] is RelationKind.TABLE:
        table = run.open_table(found[0])
        if "table_type" not in TableProperties.of(statement.properties).fields:
            spec = replace(spec, table_type=short_type(table.config))
        result = _replace(run, table, found[0], spec, frame)
        keep_comments(run, found[0], statement)
        return result
    if frame is None:
        run.make_table(name, spec)
    made = None if frame is None else filled(run, name, spec, frame)
    keep_comments(run, name, statement)
    return made


def filled(
    run: Execution,
    name: RelationName,
    spec: TableSpec,
    rows: DataFrame,
    metadata: Mapping[str, str] | None = None,
    may_go: MayGo | None = None,
) -> WriteResult:
    """Make a table of the rows; with `may_go` it replaces the current relation."""

    def fill(place: Storage, target: RelationName) -> WriteResult:
        table = run.make_in(place, replace(spec, name=target.name))
        options = COMBINE if spec.record_key else None
        return table.bulk_insert(rows, drop_deletions=True, options=options, extra_metadata=metadata)

    return make_filled(run.catalog, name, fill, may_go=may_go, lock_timeout_ms=LOCK_TIMEOUT_MS.default)[1]


def keep_comments(run: Execution, name: RelationName, statement: CreateTable) -> None:
    """Store the comments of a new table and its columns."""
    columns = {column.name: column.comment for column in statement.columns if column.comment}
    if statement.comment is not None or columns:
        run.catalog.set_comments(name, statement.comment, columns)


def create_table_like(run: Execution, statement: CreateTableLike) -> None:
    """Raises `UnsupportedSqlError` for a view, which has no keys to copy."""
    name, source = run.pins.name(statement.name), run.pins.name(statement.source)
    if run.catalog.find(name) is not None and statement.if_not_exists:
        return
    if run.catalog.is_view(source):
        message = f"CREATE TABLE ... LIKE {source}: it is a view, which has no key; write CREATE TABLE ... AS SELECT ... LIMIT 0"
        raise UnsupportedSqlError(message, relation=str(source))
    table = run.table(statement.source)
    config = table.config
    given = table_spec(name, CreateTable(statement.name, properties=statement.properties), table.schema, usual_type=short_type(config))
    if given.partition_by not in ((), config.partition_fields):
        raise OptionError(f"CREATE TABLE ... LIKE {source} takes its partitions: {', '.join(config.partition_fields) or 'none'}")
    run.make_table(
        name,
        replace(
            given,
            record_key=given.record_key or config.record_key_fields,
            ordering_fields=given.ordering_fields or config.ordering_fields,
            partition_by=config.partition_fields,
            hive_style=config.hive_style_partitioning,
            properties=layered(options_of(config), given.properties),
            constraints=config.constraints,
        ),
    )


def options_of(config: TableConfig) -> dict[str, str]:
    """Options that a table was made with or got later; most are stored under this engine's prefix."""
    own = {key: value for key, value in config.properties.items() if key in OPTIONS}
    layout = {HIVE_STYLE: config.hive_style_partitioning, URL_ENCODE: config.url_encode_partitioning}
    return {**own, **{key: str(value).lower() for key, value in layout.items()}, **config.prefixed(STORED_PREFIX)}


def short_type(config: TableConfig) -> str:
    """The table type as users give it: `cow` or `mor`."""
    return "mor" if config.table_type is TableType.MERGE_ON_READ else "cow"


def _check_same_layout(name: RelationName, config: TableConfig, spec: TableSpec) -> None:
    """Raise `UnsupportedSqlError` for what cannot change after creation, and `OptionError` for properties that would not be stored."""
    for what, stored, asked in (
        ("key", config.record_key_fields, spec.record_key),
        ("partitions", config.partition_fields, spec.partition_by),
        ("ordering field", config.ordering_fields, spec.ordering_fields),
        ("type", (config.table_type.value,), (spec.stored_type.value,)),
    ):
        if [one.lower() for one in stored] != [one.lower() for one in asked]:
            difference = f"{', '.join(stored) or 'none'}; asked for: {', '.join(asked) or 'none'}"
            message = f"CREATE OR REPLACE cannot change the {what} of {name} ({difference}); drop the table first"
            raise UnsupportedSqlError(message, relation=name)
    kept = layered(options_of(config))
    changed = [key for key, value in layered(spec.properties).items() if kept.get(key) != str(value)]
    if changed:
        instead = "set it with ALTER TABLE ... SET TBLPROPERTIES"
        raise OptionError(f"CREATE OR REPLACE of {name} does not change the option {changed[0]}; {instead}")


def _replace(run: Execution, table: HoodieTable, name: RelationName, spec: TableSpec, frame: Any) -> Any:
    config = table.config
    _check_same_layout(name, config, spec)
    rows = spec.schema.empty_table() if frame is None else frame
    # The old columns' constraints are dropped before the new rows come; the new ones are set while there are no rows.
    constrain(table, lambda _: Constraints())
    options, expected = COMBINE if spec.record_key else None, run.reads.expected(name)
    try:
        result = table.insert_overwrite_table(rows, replace_schema=True, redefines=True, options=options, expected=expected)
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        constrain(table, lambda _: config.constraints)
        raise
    constrain(table, lambda _: spec.constraints)
    if config.materialized_query is not None:
        set_query(table.storage, None, lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    return result


def table_spec(name: RelationName, statement: CreateTable, schema: pa.Schema, *, usual_type: str = "cow") -> TableSpec:
    """Raises `OptionError` if clauses and properties contradict each other, and as `TableProperties.of`."""
    given = TableProperties.of(statement.properties)
    table_type = given.fields.get("table_type", usual_type)
    if table_type not in TABLE_TYPES:
        raise OptionError(f"the table property type = {table_type!r} of {name} is neither 'cow' nor 'mor'")
    return TableSpec(
        name=name.name,
        schema=schema,
        record_key=_as_written(_agreed(given, "record_key", statement.primary_key, "PRIMARY KEY"), schema),
        ordering_fields=_as_written(given.names("ordering_fields"), schema),
        partition_by=_as_written(_agreed(given, "partition_by", statement.partition_by, "PARTITIONED BY"), schema),
        table_type=table_type,
        properties=given.options,
        constraints=constraints_of(statement.columns),
    )


def _agreed(given: TableProperties, field: str, columns: Sequence[str], clause: str) -> Sequence[str]:
    """Columns named by a clause, a property, or both alike."""
    named = given.names(field)
    if columns and named and [one.lower() for one in columns] != [one.lower() for one in named]:
        raise OptionError(f"{clause} names {', '.join(columns)}, and the table properties name {', '.join(named)}; keep one")
    return columns or named


def _as_written(names: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """Column names in the schema's spelling; SQL ignores case. Unknown names are returned unchanged, to be refused by name."""
    by_lower = {name.lower(): name for name in schema.names}
    return tuple(by_lower.get(name.lower(), name) for name in names)


def rename_relation(run: Execution, statement: RenameRelation) -> None:
    """Rename a table or stored view; a new name without a schema stays in the old one's."""
    old = run.pins.name(statement.name)
    new = RelationName(old.schema, statement.new_name[0]) if len(statement.new_name) == 1 else run.pins.name(statement.new_name)
    if run.catalog.is_view(old):
        run.catalog.rename_view(old, new)
        return
    run.catalog.rename_table(old, new)


def set_table_properties(run: Execution, statement: SetProperties) -> None:
    """Store options in the table."""
    set_properties(run.table(statement.name).storage, dict(statement.properties), lock_timeout_ms=LOCK_TIMEOUT_MS.default)


def unset_table_properties(run: Execution, statement: UnsetProperties) -> None:
    """Remove options that the table stores."""
    changes = dict.fromkeys(statement.keys)
    set_properties(run.table(statement.name).storage, changes, lock_timeout_ms=LOCK_TIMEOUT_MS.default)


def comment_on(run: Execution, statement: Comment) -> None:
    """Set or remove the comment of a relation or column."""
    if len(statement.name) < 2 and statement.column is None and run.pins.current_schema is None:
        raise MissingOptionError("a comment needs schema.name")
    name = run.pins.name(statement.name)
    if statement.column is None:
        run.catalog.set_comments(name, statement.comment)
    else:
        run.catalog.set_comments(name, columns={column_of(run, name, statement.column): statement.comment})


def comment_on_schema(run: Execution, statement: CommentOnSchema) -> None:
    """Set or remove the comment of a schema."""
    run.catalog.set_schema_comment(statement.schema, statement.comment)


def column_of(run: Execution, name: RelationName, column: str) -> str:
    """Column name in the relation's spelling. Raises `SqlError` for an unknown one."""
    is_view = run.catalog.is_view(name)
    known = run.query(f"select * from {name}").columns if is_view else run.table((name.schema, name.name)).schema.names
    found = next((one for one in known if one.lower() == column.lower()), None)
    if found is None:
        raise SqlError(f"{name} has no column {column!r}; it has {', '.join(known)}", column=column)
    return found
