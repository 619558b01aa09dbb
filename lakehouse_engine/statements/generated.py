"""GENERATED ALWAYS AS (expression): stored by CREATE TABLE, protected by ALTER TABLE, applied by INSERT, UPDATE and MERGE.

Every write computes or checks such columns (`spark.generated`). Statements leave them out if they give them no value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.model.constraints import Constraints, Generated
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.nested import Path, children
from lakehouse_engine.record.spark_types import BY_NAME, spark_name
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.generated import session_zone, with_generated
from lakehouse_engine.spark.probing import resolved
from lakehouse_engine.spark.schema import to_spark_type
from lakehouse_engine.sql.grammar.defaults import defaulted, has_query, is_default
from lakehouse_engine.sql.grammar.generated import names_of
from lakehouse_engine.sql.grammar.lexer import quote_name, significant
from lakehouse_engine.sql.grammar.statements import Assignments, Insert
from lakehouse_engine.statements.assignable import may_store
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.write.create import TableSpec

_OF_THE_MOMENT = frozenset({
    *("current_catalog", "current_database", "current_date", "current_path", "current_recipient", "current_schema", "current_time"),
    *("current_timestamp", "current_timezone", "current_user", "curdate", "input_file_block_length", "input_file_block_start"),
    *("input_file_name", "localtimestamp", "now", "session_user", "user", "version", "unix_timestamp()"),
})  # fmt: skip
"""Functions whose value does not depend on the row alone, although Spark calls them deterministic within a query."""
_ZONED = re.compile(r"time|zone|unix|date_|hour|minute|second|months_between|extract|datepart|trunc|json|csv|xml|variant", re.IGNORECASE)
"""Expressions that may compute with timestamps, whatever their columns are."""
_WORDS = frozenset({
    *("AND", "ANY", "ARRAY", "AS", "BETWEEN", "BOTH", "BY", "CASE", "CAST", "CHAR", "COLLATE", "DEC", "DECIMAL", "DISTINCT", "DIV", "ELSE"),
    *("END", "ESCAPE", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL", "IS", "LEADING", "LIKE", "MAP", "NOT", "NULL", "NUMERIC", "OR"),
    *("REGEXP", "RLIKE", "SOME", "STRUCT", "THEN", "TO", "TRAILING", "TRUE", "USING", "VARCHAR", "WHEN"),
})  # fmt: skip
"""Words of expressions."""
_ONLY = (
    "such a column is computed of other columns of its row by Spark's own functions, that give the same value each time: no sub-query,"
    " aggregate, window, function that gives rows, function of the session, parameter, variable, random value or value of the moment"
)


def settled(run: Execution, name: object, spec: TableSpec) -> Constraints:
    """Constraints of a new table, with the columns that its generated columns need.

    Raises `UnsupportedSqlError` with table and column for an expression that uses anything but other columns of the row, or does not fit.
    """
    return replace(spec.constraints, generated=tuple(_settled(run, name, one, spec) for one in spec.constraints.generated))


class _Objection(Exception):
    """Why an expression is refused; None if it is valid."""


def _settled(run: Execution, name: object, one: Generated, spec: TableSpec) -> Generated:
    try:
        return _with_inputs(run, one, spec)
    except _Objection as why:
        message = f"GENERATED ALWAYS AS ({one.expression}) of the column {one.column} of {name}: {why}"
        raise UnsupportedSqlError(message, relation=name, column=one.column) from why


def _with_inputs(run: Execution, one: Generated, spec: TableSpec) -> Generated:
    schema = spec.schema
    if one.column.lower() in {key.split(".")[0].lower() for key in spec.record_key}:
        raise _Objection("a column of the record key cannot be generated; let the key be of what it is computed of")
    kind = next(field.type for field in schema if field.name.lower() == one.column.lower())
    if any(pa.types.is_map(inner) for inner in _within(kind)):
        raise _Objection(f"Spark does not compare maps, so that a given {spark_name(kind)} could not be looked at; compute it in the query")
    _check_words(run, one.expression, schema)
    frame = abilities_of(run.spark).frame(schema.empty_table())
    given = _type_of(frame, one.expression)
    inputs = _inputs(frame, one.expression, schema)
    generated = {other.column.lower() for other in spec.constraints.generated}
    other = next((name for name in inputs if name.lower() in generated), None)
    if other is not None:
        what = "itself" if other.lower() == one.column.lower() else f"{other}, which is generated, too"
        raise _Objection(f"it is computed of {what}; write the expression of columns that are not")
    if not may_store(given, to_spark_type(kind)):
        raise _Objection(f"its type {given.simpleString()} does not fit {spark_name(kind)}; cast it")
    types = [kind, *(schema.field(name).type for name in inputs)]
    zoned = _ZONED.search(one.expression) is not None or any(_is_zoned(inner) for outer in types for inner in _within(outer))
    return Generated(one.column, one.expression, tuple(inputs), session_zone(frame) if zoned else "")


def _within(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield kind
    for field in children(kind):
        yield from _within(field.type)
    if pa.types.is_map(kind):
        yield from _within(kind.item_type)
    elif pa.types.is_list(kind):
        yield from _within(kind.value_type)


def _is_zoned(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _check_words(run: Execution, text: str, schema: pa.Schema) -> None:
    """Refuse what analysis accepts."""
    signs = [token.keyword for token in significant(text)]
    if has_query(text) or any(sign == "*" and (not at or signs[at - 1] in ("(", ",", ".")) for at, sign in enumerate(signs)):
        raise _Objection(_ONLY)
    if ["UNIX_TIMESTAMP", "(", ")"] in [signs[at : at + 3] for at in range(len(signs))]:
        raise _Objection(f"{_ONLY} (unix_timestamp())")
    columns, of_session = {name.lower() for name in schema.names}, _functions_of(run)
    for name, called in names_of(text):
        moment = name in _OF_THE_MOMENT and (called or name not in columns)
        of_the_session = name in of_session if called else _may_be_variable(name, columns) and _is_variable(run, name)
        if moment or of_the_session:
            raise _Objection(f"{_ONLY} ({name})")


def _functions_of(run: Execution) -> set[str]:
    """Functions that only this session has."""
    found = run.spark.sql("show user functions").toArrow().column(0).to_pylist()
    return {str(name).lower().rsplit(".", 1)[-1] for name in found}


def _may_be_variable(name: str, columns: Collection[str]) -> bool:
    return name in columns or (name not in BY_NAME and name.upper() not in _WORDS)


def _is_variable(run: Execution, name: str) -> bool:
    return resolved(lambda: run.spark.sql(f"select session.{quote_name(name)}")) is not None


def _type_of(frame: DataFrame, text: str) -> DataType:
    """Type of an expression that gives each row one value, always the same."""
    try:
        _ = frame.selectExpr(f"count(({text}))").schema  # in an aggregate, Spark accepts deterministic expressions of one row
        return frame.selectExpr(f"({text}) as v").schema.fields[0].dataType
    except PySparkException as error:
        first = str(error).strip().split("\n")[0]
        raise _Objection(f"{_ONLY} ({first})") from error


def _inputs(frame: DataFrame, text: str, schema: pa.Schema) -> list[str]:
    """Columns that the expression needs, according to Spark: a name may also be a type or a parameter."""
    named = {name for name, called in names_of(text) if not called}
    candidates = [name for name in schema.names if name.lower() in named]
    # Without such a column its name is a function.
    sure = [name for name in candidates if name.lower() in _OF_THE_MOMENT]
    return [name for name in candidates if name in sure or resolved(partial(frame.drop(name).selectExpr, f"({text}) as v")) is None]


def check_is_free(columns: Iterable[Generated], path: Path, what: str) -> None:
    """Raise `UnsupportedSqlError` for a column (or nested field) that a generated column needs, and for a field of a generated one."""
    for one in columns:
        if one.uses(path[0]) or (len(path) > 1 and one.column.lower() == path[0].lower()):
            why = f"the column {one.column!r} is GENERATED ALWAYS AS ({one.expression}); drop that one before"
            message = f"{'.'.join(path)!r} {what}: {why}"
            raise UnsupportedSqlError(message, column=".".join(path))


def left_to_default(statement: Insert, names: Sequence[str], columns: Iterable[Generated]) -> list[str]:
    """Generated columns for which an INSERT's query (with columns `names`) says DEFAULT, so that they are computed.

    Raises `UnsupportedSqlError` if only some rows of VALUES do.
    """
    own = {one.column.lower() for one in columns}
    places = {} if statement.by_name else {number: name for number, name in enumerate(names) if name.lower() in own}
    if not places:
        return []
    everywhere, somewhere = defaulted(statement.query)
    for number in sorted(places.keys() & somewhere):
        name = places[number]
        message = f"the generated column {name} is DEFAULT in some rows of VALUES and not in others; write DEFAULT in all of them"
        raise UnsupportedSqlError(message, column=name)
    return [places[number] for number in sorted(places.keys() & everywhere)]


def unassigned(assignments: Assignments, columns: Iterable[Generated]) -> Assignments:
    """Assignments without DEFAULT for generated columns, which are then computed.

    Raises `UnsupportedSqlError` for a field inside one.
    """
    own = {one.column.lower() for one in columns}
    inside = next((name for name, _ in assignments if "." in name and name.lower().split(".")[0] in own), None)
    if inside is not None:
        raise UnsupportedSqlError(f"{inside} is inside of a generated column; assign what that is computed of", column=inside)
    return tuple((name, text) for name, text in assignments if name.lower() not in own or not is_default(text))


def completed(rows: DataFrame, columns: Sequence[Generated], schema: pa.Schema, config: TableConfig) -> DataFrame:
    """The rows, with the generated columns that they lack."""
    given = {name.lower() for name in rows.columns}
    absent = [one for one in columns if one.column.lower() not in given]
    return with_generated(rows, absent, schema, config) if absent else rows
