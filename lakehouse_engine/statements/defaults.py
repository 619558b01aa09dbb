"""DEFAULT of columns: stored by CREATE and ALTER TABLE, applied by INSERT, UPDATE and MERGE.

The expression is stored as text and computed by each statement; stored rows hold values. A default is whatever Spark can compute without
rows (what an inline table accepts), as in Spark's own tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import DataType, DecimalType, IntegralType, NullType, NumericType

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.nested import field_at
from lakehouse_engine.record.spark_types import spark_name
from lakehouse_engine.spark.probing import resolved
from lakehouse_engine.spark.schema import to_spark_type
from lakehouse_engine.sql.grammar.defaults import has_query, is_default, reads_relation, with_values
from lakehouse_engine.sql.grammar.statements import Assignments, Insert, Merge, MergeClause, SetDefault
from lakehouse_engine.statements.assignable import may_store
from lakehouse_engine.statements.columns import constrain
from lakehouse_engine.statements.context import Execution

Defaults = Mapping[str, str]
"""Expressions by lower-case column name, cast to the column's type."""


def set_default(run: Execution, statement: SetDefault) -> None:
    """Set defaults for later statements; stored rows stay.

    Raises `UnsupportedSqlError` as `check_defaults`, and for a nested field.
    """
    table = run.changed(statement.name)
    if "." in statement.column:
        message = f"DEFAULT of {statement.column}, which is inside of another column, is not kept; set one of the whole column"
        raise UnsupportedSqlError(message, relation=".".join(statement.name), column=statement.column)
    column = field_at(table.schema, (statement.column,))[1].name
    generated = table.config.constraints.generated_as(column)
    if statement.default is not None and generated is not None:
        message = f"DEFAULT of {column}: it is GENERATED ALWAYS AS ({generated.expression}), and can have one of them"
        raise UnsupportedSqlError(message, relation=".".join(statement.name), column=column)
    if statement.default is not None:
        wanted = replace(table.config.constraints, defaults=((column, statement.default),))
        check_defaults(run, run.pins.name(statement.name), wanted, table.schema)
    constrain(table.handle, lambda old: old.with_default(column, statement.default))


def check_defaults(run: Execution, name: object, constraints: Constraints, schema: pa.Schema) -> None:
    """Raises `UnsupportedSqlError` with table and column for a default that is not constant, or that the column cannot hold."""
    kinds = {field.name.lower(): field.type for field in schema}
    for column, text in constraints.defaults:
        why = _objection(run, text, kinds.get(column.lower()), constraints.length_of(column))
        if why is not None:
            raise UnsupportedSqlError(f"DEFAULT {text} of the column {column} of {name}: {why}", relation=name, column=column)


_NO_CONSTANT = (
    "a default holds literals and Spark's own functions that give one value, such as current_timestamp(), and no sub-query, column,"
    " aggregate, window, parameter or random value; give such a value in each INSERT"
)


def _objection(run: Execution, text: str, kind: pa.DataType | None, length: int | None) -> str | None:
    """Why the default is refused; None if it is valid."""
    if kind is None:
        return "the table has no such column"
    if has_query(text):
        return _NO_CONSTANT
    source = f"(select v from values (({text})) as t(v))"
    try:
        given = run.spark.sql(source).schema.fields[0].dataType
    except PySparkException as error:
        return f"{_NO_CONSTANT} ({_first_line(error)})"
    wanted = to_spark_type(kind)
    unfit = f"its type {given.simpleString()} does not fit {spark_name(kind)}; write a value of that type"
    if isinstance(given, NullType):
        return None
    if not may_store(given, wanted):
        return unfit
    try:
        return _lost(run, source, given, wanted, length)
    except PySparkException as error:
        return f"{unfit} ({_first_line(error)})"


def _lost(run: Execution, source: str, given: DataType, wanted: DataType, length: int | None) -> str | None:
    """True if the column would hold another value."""
    kind = wanted.simpleString()
    exact = isinstance(given, NumericType) and isinstance(wanted, IntegralType | DecimalType)
    back = f"try_cast(made as {given.simpleString()}) <=> v" if exact else "true"
    long = f"coalesce(length(made) > {length}, false)" if length is not None else "false"
    judged = f"select v is not null and made is null as gone, {back} as same, {long} as long from (select v, try_cast(v as {kind}) as made"
    found: dict[str, Any] = run.spark.sql(f"{judged} from {source})").toArrow().to_pylist()[0]
    if found["gone"]:
        return f"it cannot be cast to {kind}; write a value of that type"
    if not found["same"]:
        return f"it would be another number as {kind}; write a value that the column holds"
    return f"it has more characters than VARCHAR({length}); write a shorter one" if found["long"] else None


def _first_line(error: PySparkException) -> str:
    return str(error).strip().split("\n")[0]


def defaults_of(config: TableConfig, schema: pa.Schema) -> Defaults:
    """Defaults of existing columns; another writer may have dropped a column and left its default."""
    constraints = config.constraints
    texts = ((field, constraints.default_of(field.name)) for field in schema)
    return {field.name.lower(): _typed(text, field.type) for field, text in texts if text is not None}


def _typed(text: str, kind: pa.DataType) -> str:
    # A comment at the end of the text would swallow the bracket.
    return f"cast(({text}\n) as {to_spark_type(kind).simpleString()})"


def queried(run: Execution, statement: Insert, schema: pa.Schema, defaults: Defaults) -> tuple[DataFrame, bool]:
    """Rows of an INSERT's query with values for DEFAULT, and whether the word occurs. Raises as `with_values`.

    Like in Spark, DEFAULT is a column if the query reads a relation with a column of that name.
    """
    names = given_names(statement, schema)

    def value_of(number: int) -> str:
        return defaults.get(names[number].lower(), "null") if number < len(names) else "null"

    if reads_relation(statement.query) and "default" in statement.query.lower():
        rows = resolved(lambda: run.query(statement.query))
        if rows is not None:
            return rows, False
    return run.query(with_values(statement.query, value_of, by_name=statement.by_name)), True


def given_names(statement: Insert, schema: pa.Schema) -> list[str]:
    """Columns that an INSERT's query gives, in order."""
    fixed = {name.lower() for name, _ in statement.partition}
    return list(statement.columns) or [name for name in schema.names if name.lower() not in fixed]


def with_absent(rows: DataFrame, schema: pa.Schema, defaults: Defaults) -> DataFrame:
    """The rows, with defaults for the columns that they lack."""
    given = {column.lower() for column in rows.columns}
    absent = {field.name: expr(defaults[field.name.lower()]) for field in schema if field.name.lower() in defaults.keys() - given}
    return rows.withColumns(absent) if absent else rows


def assigned(assignments: Assignments, defaults: Defaults) -> Assignments:
    """Assignments with values for DEFAULT; null for a column without one.

    Raises `UnsupportedSqlError` for a nested field, which has no default.
    """
    nested = next((name for name, text in assignments if "." in name and is_default(text)), None)
    if nested is not None:
        message = f"{nested} = DEFAULT: {nested} is inside of another column and has no default; assign a value"
        raise UnsupportedSqlError(message, column=nested)
    return tuple((name, defaults.get(name.lower(), "null") if is_default(text) else text) for name, text in assignments)


def merged(statement: Merge, defaults: Defaults) -> Merge:
    """The MERGE with values for DEFAULT, and for columns that its INSERT leaves out."""
    return replace(statement, clauses=tuple(_clause(clause, defaults) for clause in statement.clauses))


def _clause(clause: MergeClause, defaults: Defaults) -> MergeClause:
    if clause.assignments is None or clause.action == "delete":
        return clause
    given = assigned(clause.assignments, defaults)
    if clause.action == "insert":
        given = (*given, *_absent({name.lower() for name, _ in given}, defaults))
    return replace(clause, assignments=given)


def _absent(given: Iterable[str], defaults: Defaults) -> Assignments:
    return tuple((name, text) for name, text in defaults.items() if name not in set(given))
