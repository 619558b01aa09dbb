"""SHOW and DESCRIBE: answers about the warehouse, as DataFrames."""

from __future__ import annotations

import fnmatch
from dataclasses import asdict, fields

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakehouse_engine.catalog.catalog import RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import LakehouseError, MissingOptionError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.table_config import DELETES_KEY, TableConfig
from lakehouse_engine.options import INDEX_TYPE
from lakehouse_engine.record.merging.payloads import PAYLOADS
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.schema import to_spark_type
from lakehouse_engine.sql.grammar.lexer import quote_name, quote_string
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.grammar.statements import (
    Describe,
    DescribeHistory,
    DescribeSchema,
    Refresh,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTables,
)
from lakehouse_engine.statements.answers.describe_json import describe_json
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.definitions import column_of, options_of, short_type
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.history import HistoryEntry
from lakehouse_engine.write.create import HIVE_STYLE, URL_ENCODE, usual_payload

_COUNTS = ("inserts", "updates", "deletes", "files", "bytes_written")


def show_schemas(run: Execution, statement: ShowSchemas) -> DataFrame:
    """Schemas of the warehouse."""
    return run.rows(["namespace"], [[name] for name in run.catalog.schemas() if _like(name, statement.pattern)])


def show_tables(run: Execution, statement: ShowTables) -> DataFrame:
    """Tables and stored views of a schema, or only the views."""
    schema = statement.schema or run.pins.current_schema
    if schema is None:
        raise MissingOptionError("SHOW TABLES needs a schema: write SHOW TABLES IN schema")
    tables = [] if statement.views else run.catalog.tables(schema)
    found = [name for name in (*tables, *run.catalog.views(schema)) if _like(name.name, statement.pattern)]
    if statement.extended:
        rows = [[name.schema, name.name, "false", _information_or_error(run, name)] for name in found]
        return run.rows(["namespace", "tableName", "isTemporary", "information"], rows)
    return run.rows(["namespace", "tableName", "isTemporary"], [[name.schema, name.name, "false"] for name in found])


def _information_or_error(run: Execution, name: RelationName) -> str:
    """For a relation that cannot be read, the reason, so that the other rows still show."""
    try:
        return _information(run, name)
    except (PySparkException, LakehouseError) as error:
        return f"Database: {name.schema}\nTable: {name.name}\nError: {error}\n"


def _information(run: Execution, name: RelationName) -> str:
    """In Spark's words, which adapters and packages parse."""
    parts = (name.schema, name.name)
    is_view = run.catalog.kind_of(parts) is RelationKind.VIEW
    query = None if is_view else run.table(parts).config.materialized_query
    kind = "VIEW" if is_view else "MANAGED" if query is None else "MATERIALIZED_VIEW"
    lines = [f"Database: {name.schema}", f"Table: {name.name}", f"Type: {kind}"]
    if is_view:
        lines.append(f"View Text: {run.catalog.view(name).sql}")
    else:
        table = run.table(parts)
        lines += [] if query is None else [f"View Text: {query}"]
        lines += ["Provider: hudi", f"Location: {table.storage.root}", "Partition Provider: Catalog"]
        lines += [f"Partition Columns: [{', '.join(f'`{one}`' for one in table.config.partition_fields)}]"]
    columns = [_printed(column, kind) for column, kind in _columns(run, parts)]
    return "\n".join([*lines, "Schema: root", *columns, ""])


def _printed(column: str, kind: str) -> str:
    nullable = str(not kind.endswith(" NOT NULL")).lower()
    return f" |-- {column}: {kind.removesuffix(' NOT NULL')} (nullable = {nullable})"


def _like(name: str, pattern: str | None) -> bool:
    return pattern is None or any(fnmatch.fnmatchcase(name.lower(), one.strip().lower()) for one in pattern.split("|"))


def _columns(run: Execution, parts: Parts) -> list[tuple[str, str]]:
    name = run.pins.name(parts)
    if run.catalog.is_view(name):
        frame = run.query(f"select * from {name}")
        return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    table = run.table(parts)
    constraints = table.config.constraints
    return [(field.name, _declared(field, constraints)) for field in table.schema]


def _default_rows(table: HoodieTable) -> list[list[str | None]]:
    """In Spark's form."""
    constraints = table.config.constraints
    texts = [(field, constraints.default_of(field.name)) for field in table.schema]
    rows: list[list[str | None]] = [[one.name, to_spark_type(one.type).simpleString(), text] for one, text in texts if text is not None]
    return [["", "", ""], ["# Column Default Values", "", ""], *rows] if rows else []


def _generated_rows(table: HoodieTable) -> list[list[str | None]]:
    columns = table.config.constraints.generated_among(table.schema.names)
    kinds = {field.name.lower(): to_spark_type(field.type).simpleString() for field in table.schema}
    rows: list[list[str | None]] = [[one.column, kinds[one.column.lower()], one.expression] for one in columns]
    return [["", "", ""], ["# Generated Columns", "", ""], *rows] if rows else []


def _declared(field: pa.Field, constraints: Constraints) -> str:
    """Type in CREATE TABLE syntax, with the column's constraints."""
    length = constraints.length_of(field.name)
    kind = to_spark_type(field.type).simpleString() if length is None else f"varchar({length})"
    return f"{kind} NOT NULL" if constraints.is_not_null(field.name) else kind


def show_columns(run: Execution, statement: ShowColumns) -> DataFrame:
    """Names of a relation's columns."""
    return run.rows(["col_name"], [[name] for name, _ in _columns(run, statement.name)])


def describe(run: Execution, statement: Describe) -> DataFrame:
    """Columns of a relation with types and comments; `EXTENDED` adds facts about it."""
    if statement.as_json:
        return describe_json(run, statement)
    relation = run.pins.name(statement.name)
    is_view = run.catalog.is_view(relation)
    comments = {column: text for column, text in run.catalog.view(relation).columns if text} if is_view else {}
    comments |= run.catalog.comments(relation).columns
    rows = [[name, kind, comments.get(name)] for name, kind in _columns(run, statement.name)]
    if statement.column is not None:
        column = column_of(run, relation, statement.column)
        rows = [row for row in rows if row[0] == column]
    elif statement.extended:
        rows += _details(run, relation)
    return run.rows(["col_name", "data_type", "comment"], rows)


def _details(run: Execution, name: RelationName) -> list[list[str | None]]:
    kind = run.catalog.kind_of((name.schema, name.name))
    rows: list[list[str | None]] = [["", "", ""], ["# Detailed Table Information", "", ""]]
    rows += [["Name", str(name), ""], ["Type", str(kind), ""]]
    if kind is RelationKind.VIEW:
        return [*rows, ["View Text", run.catalog.view(name).sql, ""]]
    table = run.table((name.schema, name.name))
    config = table.config
    if config.materialized_query is not None:
        rows[-1] = ["Type", "materialized view", ""]
        rows.append(["View Text", config.materialized_query, ""])
    rows.append(["Provider", "hudi", ""])
    rows.extend([key, value, ""] for key, value in sorted(config.properties.items()))
    return [*rows, *_default_rows(table), *_generated_rows(table)]


_HISTORY = pa.schema([
    (one.name, pa.bool_() if one.name == "archived" else pa.int64() if one.name in _COUNTS else pa.string()) for one in fields(HistoryEntry)
])


def describe_history(run: Execution, statement: DescribeHistory) -> DataFrame:
    """One row per instant, newest first, with the columns of `HistoryEntry`."""
    entries = run.table(statement.name).services.history(statement.limit)
    return abilities_of(run.spark).frame(pa.Table.from_pylist([asdict(entry) for entry in entries], schema=_HISTORY))


def describe_schema(run: Execution, statement: DescribeSchema) -> DataFrame:
    """Name and comment of a schema."""
    comment = run.catalog.schema_comment(statement.schema)
    return run.rows(["info_name", "info_value"], [["Namespace Name", statement.schema], ["Comment", comment]])


def show_properties(run: Execution, statement: ShowProperties) -> DataFrame:
    """All properties, or one if a key is given. `primaryKey`, `preCombineField` and `type`, the options of table creation, show their
    stored values.
    """
    config = run.table(statement.name).config
    properties = dict(config.properties)
    if statement.key is not None:
        properties |= _as_made(config)
    return run.rows(["key", "value"], [[key, value] for key, value in sorted(properties.items()) if statement.key in (None, key)])


def show_partitions(run: Execution, statement: ShowPartitions) -> DataFrame:
    """Partitions that hold files. Like in Hudi, a dropped one is not listed although its directory remains."""
    state = run.table(statement.name).state
    paths = state.live_partitions()
    # If no files are left, these paths are directories only.
    is_empty = not any(state.view.latest_slices(path) for path in paths)
    return run.rows(["partition"], [] if is_empty else [[path] for path in paths])


def _as_made(config: TableConfig) -> dict[str, str]:
    given = {"primaryKey": config.record_key_fields, "preCombineField": config.ordering_fields, "type": (short_type(config),)}
    return {key: ",".join(names) for key, names in given.items() if names}


def show_create_table(run: Execution, statement: ShowCreateTable) -> DataFrame:
    """Statement that makes the same relation, without its rows."""
    name = run.pins.name(statement.name)
    is_view = run.catalog.is_view(name)
    lines = _view_lines(run, name) if is_view else _table_lines(run, run.table(statement.name), name)
    return run.rows(["createtab_stmt"], [["\n".join(lines)]])


def _view_lines(run: Execution, name: RelationName) -> list[str]:
    view, comments = run.catalog.view(name), run.catalog.comments(name)
    columns = [f"{quote_name(column)}{_comment_clause(comments.columns.get(column) or text)}" for column, text in view.columns]
    lines = [f"CREATE VIEW {name} ({', '.join(columns)})" if columns else f"CREATE VIEW {name}"]
    return [*lines, *_comment_line(comments.comment or view.comment), f"AS {view.sql}"]


def _table_lines(run: Execution, table: HoodieTable, name: RelationName) -> list[str]:
    config, comments = table.config, run.catalog.comments(name)
    query = config.materialized_query
    columns = ",\n  ".join(
        f"`{column}` {kind}{_value_clause(config.constraints, column)}{_comment_clause(comments.columns.get(column))}"
        for column, kind in _columns(run, (name.schema, name.name))
    )
    lines = [f"CREATE TABLE {name} (\n  {columns})", "USING hudi"] if query is None else [f"CREATE MATERIALIZED VIEW {name}"]
    lines += [f"PARTITIONED BY ({', '.join(config.partition_fields)})"] if config.partition_fields else []
    lines += _comment_line(comments.comment)
    properties = [f"{key} = {quote_string(value)}" for key, value in _as_made(config).items()]
    properties += [f"'{key}' = {quote_string(value)}" for key, value in sorted(_own_options(config).items())]
    lines += [f"TBLPROPERTIES ({', '.join(properties)})"] if properties else []
    return lines if query is None else [*lines, f"AS {query}"]


def _own_options(config: TableConfig) -> dict[str, str]:
    """Properties that a table made without options would not have."""
    payload = PAYLOADS[usual_payload(config.ordering_fields)].java_class
    usual = {INDEX_TYPE.key: INDEX_TYPE.default, "hoodie.compaction.payload.class": payload, HIVE_STYLE: "true", URL_ENCODE: "true"}
    soft = {DELETES_KEY: "soft"} if config.deletes_softly else {}
    return {key: value for key, value in options_of(config).items() if usual.get(key) != value} | soft


def _comment_clause(comment: str | None) -> str:
    return f" COMMENT {quote_string(comment)}" if comment else ""


def _comment_line(comment: str | None) -> list[str]:
    return [f"COMMENT {quote_string(comment)}"] if comment else []


def _value_clause(constraints: Constraints, column: str) -> str:
    default, generated = constraints.default_of(column), constraints.generated_as(column)
    return f" DEFAULT {default}" if default is not None else "" if generated is None else f" GENERATED ALWAYS AS ({generated.expression})"


def refresh(run: Execution, statement: Refresh) -> None:
    """Nothing to do: every statement sees the newest commit."""
