"""INSERT, UPDATE, DELETE and TRUNCATE: Spark computes the rows, the engine writes them in one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, concat, expr, lit, raise_error, when
from pyspark.sql.types import StructField

from lakehouse_engine import errors
from lakehouse_engine.errors import ConstraintError, LakehouseError, RepeatedKeyError, SqlError, UnsupportedSqlError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.spark.schema import free_name, to_arrow_type, to_spark_type
from lakehouse_engine.spark.settings import casts_refuse
from lakehouse_engine.sql.binding.needs import Needs, names_in, rows_where
from lakehouse_engine.sql.binding.partitions_read import partitions_read
from lakehouse_engine.sql.grammar.casts import stored_as
from lakehouse_engine.sql.grammar.lexer import quote_name, significant
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.grammar.statements import Delete, DropPartitions, Insert, MultiInsert, Truncate, Update
from lakehouse_engine.statements.columns import overlaps
from lakehouse_engine.statements.context import EVOLVE, ONE_ROW_A_KEY
from lakehouse_engine.statements.defaults import assigned, defaults_of, given_names, queried, with_absent
from lakehouse_engine.statements.generated import completed, left_to_default, unassigned
from lakehouse_engine.statements.nested import NESTED, Edits, by_field_names, check_fields, conformed, edited
from lakehouse_engine.statements.rows.by_row import PLACE, by_row, check_has_places, held
from lakehouse_engine.statements.rows.moving import check_arrivals, may_move
from lakehouse_engine.statements.rows.partition_clause import check_clause, partition_of

if TYPE_CHECKING:
    from lakehouse_engine.commit.expected import ExpectedState
    from lakehouse_engine.statements.context import Execution, Target

def insert(run: Execution, statement: Insert) -> WriteResult:
    """Columns by position (or list, or name), cast to the table's types; missing ones are computed, get defaults, or are null."""
    table = run.changed(statement.name)
    return _inserted(run, statement, table, _rows_of(run, statement, table))


def _rows_of(run: Execution, statement: Insert, table: Target) -> DataFrame:
    check_clause(statement, table.config)
    schema = table.schema
    defaults = defaults_of(table.config, schema)
    query, has_defaults = queried(run, statement, schema, defaults)
    left_out = left_to_default(statement, given_names(statement, schema), table.generated) if has_defaults else []
    rows = _shaped(query, statement, schema).drop(*left_out)
    return with_absent(rows, schema, defaults)


def multi_insert(run: Execution, statement: MultiInsert) -> list[WriteResult]:
    """One commit per target, in order, all from one state of what is read. All queries are checked before the first.

    Raises `SqlError` naming the existing commits if a later insert fails: nothing is taken back.
    """
    shaped = []
    for one in statement.inserts:
        table = run.changed(one.name)
        shaped.append((one, table, _rows_of(run, one, table)))
    done: dict[str, WriteResult] = {}
    for one, table, rows in shaped:
        with _saying(done, ".".join(one.name)):
            done[".".join(one.name)] = _inserted(run, one, table, rows)
    return list(done.values())


@contextmanager
def _saying(done: Mapping[str, WriteResult], name: str) -> Iterator[None]:
    """Repeating the whole statement after a change of its inputs would store the first inserts twice."""
    try:
        yield
    except LakehouseError as error:
        if not done:
            raise
        stay = ", ".join(f"{written} ({result.instant})" for written, result in done.items())
        message = f"FROM ... INSERT ... INSERT: nothing was written to {name}, and the commits before it stay: {stay}. {error}"
        raise SqlError(message, relation=name) from error


def _inserted(run: Execution, statement: Insert, table: Target, rows: DataFrame) -> WriteResult:
    """Write rows that were cast to the table's types."""
    if statement.replaced is not None:
        return _replace_where(run, table, statement.name, statement.replaced, rows)
    expected = run.expected(statement.name)
    if not statement.overwrite:
        return table.handle.insert(rows, options=EVOLVE, expected=expected)
    if statement.partition and not statement.dynamic:
        named = partition_of(run, table, statement.partition)
        return table.handle.insert_overwrite(rows, options=EVOLVE, replace_partitions=[named], expected=expected)
    mode = run.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "STATIC") or "STATIC"
    if statement.dynamic or mode.upper() == "DYNAMIC":
        return table.handle.insert_overwrite(rows, options=EVOLVE, expected=expected)
    return table.handle.insert_overwrite_table(rows, options=EVOLVE, expected=expected)


def _replace_where(run: Execution, table: Target, name: Parts, condition: str, rows: DataFrame) -> WriteResult:
    """Replace the stored rows for which the condition holds. New rows must satisfy it too, or nothing is written."""
    gone = Delete(name, None, condition)
    whole = completed(rows, table.generated, table.schema, table.config)
    checked = _checked(run, whole, table.schema, name, condition)
    return table.handle.replace_rows(checked, replaced=_chosen(run, gone, PLACE), options=EVOLVE, expected=_expected(run, gone))


def _checked(run: Execution, rows: DataFrame, schema: pa.Schema, name: Parts, condition: str) -> DataFrame:
    """The same rows; running them raises `ConstraintError` for one that violates the condition."""
    said = f"INSERT INTO {'.'.join(name)} REPLACE WHERE {' '.join(condition.split())}"
    message = f"{ConstraintError.__name__}: {said}: a row to be written is none for which that is true; nothing was written\n"
    # Split, so that a Spark error that prints this plan does not look like this error.
    refusal = raise_error(concat(lit(f"\n{errors.__name__}."), lit(message))).cast("boolean")
    given = {column.lower() for column in rows.columns}
    absent = {field.name: lit(None).cast(to_spark_type(field.type)) for field in schema if field.name.lower() not in given}
    whole = rows.withColumns(absent) if absent else rows
    source = f"{quote_name(run.pins.keep(whole))} as {quote_name(name[-1])}"
    holds = free_name("__lakehouse_holds", whole.columns)
    judged = run.query(f"select *, coalesce(({condition}), false) as {holds} from {source}")
    return judged.where(when(col(holds), lit(True)).otherwise(refusal)).drop(holds, *absent)


def _shaped(frame: DataFrame, statement: Insert, schema: pa.Schema) -> DataFrame:
    """The given columns with the table's names and types."""
    static, known = dict(statement.partition), {field.name.lower(): field for field in schema}
    names = frame.columns if statement.by_name else given_names(statement, schema)
    if len(names) != len(frame.columns):
        raise SqlError(f"INSERT gives {len(frame.columns)} columns where {len(names)} are expected: {', '.join(names)}")
    unknown = [name for name in (*names, *static) if name.lower() not in known]
    if unknown:
        raise SqlError(f"the table has no column {unknown[0]!r}; it has {', '.join(schema.names)}", column=unknown[0])
    twice = {name.lower() for name in names} & {name.lower() for name in static}
    if twice:
        raise SqlError(f"PARTITION gives {min(twice)!r} a value, and the query does, too", column=min(twice))
    if statement.by_name:
        columns = [_conformed(one, known[one.name.lower()]) for one in frame.schema.fields]
        return frame.select(*columns, *_fixed(static, known))
    given = frame.toDF(*[f"__c{number}" for number in range(len(names))])
    columns = [_stored(one, known[name.lower()]) for one, name in zip(given.schema.fields, names, strict=True)]
    return given.select(*columns, *_fixed(static, known))


def _fixed(static: Mapping[str, object], known: Mapping[str, pa.Field]) -> list[Column]:
    return [_cast(lit(value), known[name.lower()]) for name, value in static.items()]


def _conformed(given: StructField, field: pa.Field) -> Column:
    """A column of a query BY NAME, nested fields by name too; missing ones are null."""
    if not isinstance(given.dataType, NESTED):
        return _stored(given, field)
    kind = to_arrow_type(given.dataType, given.name)
    check_fields(kind, field.type, given.name)
    return _cast(expr(conformed(quote_name(given.name), kind, field.type)), field)


def _stored(given: StructField, field: pa.Field) -> Column:
    name, kind = quote_name(given.name), to_spark_type(field.type)
    if given.dataType == kind or isinstance(given.dataType, NESTED) or isinstance(kind, NESTED):
        return _cast(col(name), field)
    return expr(stored_as(name, given.dataType.simpleString(), kind.simpleString())).alias(field.name)


def _cast(column: Column, field: pa.Field) -> Column:
    return column.cast(to_spark_type(field.type)).alias(field.name)


def delete(run: Execution, statement: Delete) -> WriteResult:
    """Delete the rows for which the condition holds, by their stored keys."""
    table = run.changed(statement.name)
    if statement.condition is None:
        return table.handle.insert_overwrite_table(table.schema.empty_table())
    rows = _chosen(run, statement, [RECORD_KEY, PARTITION_PATH])
    try:
        return table.handle.delete(rows, given_keys=True, single_rows=True, expected=_expected(run, statement))
    except RepeatedKeyError as error:
        check_has_places(table.config, error)
        return by_row(table.handle, table.schema.empty_table(), _chosen(run, statement, PLACE), _expected(run, statement))


def _chosen(run: Execution, statement: Delete, columns: Sequence[str]) -> DataFrame:
    """Columns of the rows for which the condition holds."""
    names = names_in(significant(f"{', '.join(columns)}, {statement.condition}"))
    return run.query(f"select {', '.join(columns)} from {_target(run, statement, names)} where ({statement.condition})")


def update(run: Execution, statement: Update) -> WriteResult:
    """Upsert the rows for which the condition holds, with the assigned columns changed, under their stored keys."""
    table = run.changed(statement.name)
    schema, generated = table.schema, table.generated
    _check_assigned(statement, table)
    target = _target(run, statement)
    assignments = assigned(unassigned(statement.assignments, generated), defaults_of(table.config, schema))
    assignments = by_field_names(assignments, schema, partial(run.types_of, source=target))
    assigning = {tuple(name.lower().split(".")): text for name, text in assignments}
    edits = Edits(assigned=assigning, checks=not casts_refuse(run.spark))
    computed = {one.column.lower() for one in generated} - {path[0] for path in edits.assigned}
    alias = quote_name(statement.alias or statement.name[-1])
    columns = ", ".join(_value(field, edits, alias) for field in schema if field.name.lower() not in computed)
    where = "" if statement.condition is None else f" where ({statement.condition})"
    moves = may_move(table, (name for name, _ in assignments))
    try:
        if moves:
            return _moved(run, statement, table, f"select {RECORD_KEY}, {PARTITION_PATH}, {columns} from {target}{where}")
        rows = run.query(f"select {RECORD_KEY}, {columns} from {target}{where}")
        return table.handle.upsert(rows, given_keys=True, as_given=True, single_rows=True, expected=_expected(run, statement))
    except RepeatedKeyError as error:
        check_has_places(table.config, error)
        named = ", ".join((RECORD_KEY, *PLACE))
        return _updated_rows(run, statement, table, f"select {named}, {columns} from {target}{where}", moves=moves)


def _updated_rows(run: Execution, statement: Update, table: Target, query: str, *, moves: bool) -> WriteResult:
    """Update rows by position."""
    with held(run, query) as rows:
        if moves:
            _check_moves(run, statement, table, rows)
        return by_row(table.handle, rows.drop(*PLACE), rows.select(*PLACE), _expected(run, statement), given_keys=True)


def _check_assigned(statement: Update, table: Target) -> None:
    paths, names = [tuple(name.split(".")) for name, _ in statement.assignments], table.schema.names
    unknown = [path[0] for path in paths if path[0].lower() not in {name.lower() for name in names}]
    if unknown:
        raise SqlError(f"the table has no column {unknown[0]!r}; it has {', '.join(names)}", column=unknown[0])
    keys = [".".join(path) for path in paths if overlaps(path, table.config.record_key_fields)]
    if keys:
        raise UnsupportedSqlError(f"UPDATE cannot change the key column {keys[0]!r}; delete the row and insert it anew", column=keys[0])


def _moved(run: Execution, statement: Update, table: Target, query: str) -> WriteResult:
    """Update rows that may change partition: such a row is deleted from its old partition in the same commit."""
    with held(run, query) as rows:
        _check_moves(run, statement, table, rows)
        old, new = rows.select(RECORD_KEY, PARTITION_PATH), rows.drop(PARTITION_PATH)
        return table.handle.upsert(
            new,
            delete_keys=old,
            given_keys=True,
            as_given=True,
            single_rows=True,
            options=ONE_ROW_A_KEY,
            expected=_expected(run, statement),
        )


def _check_moves(run: Execution, statement: Update, table: Target, rows: DataFrame) -> None:
    check_arrivals(run, statement.name, table, completed(rows, table.generated, table.schema, table.config), rows)


def _expected(run: Execution, statement: Update | Delete) -> ExpectedState | None:
    """Record what the statement read: single partitions only, if its condition says so."""
    run.narrow(statement.name, lambda state: partitions_read(statement.condition, statement.alias or statement.name[-1], state))
    return run.expected(statement.name)


def _value(field: pa.Field, edits: Edits, table: str) -> str:
    # A column with the table's name would be read as a struct with the table's columns as fields.
    name = quote_name(field.name)
    return f"{edited(f'{table}.{name}', field.type, (field.name.lower(),), edits)} as {name}"


def _target(run: Execution, statement: Update | Delete, names: frozenset[str] | None = None) -> str:
    """The table with meta columns under its alias or last name; `names` as in `Needs`."""
    table = statement.alias or statement.name[-1]
    needs = Needs(names, rows_where(statement.condition, table))
    return f"{quote_name(run.target(statement.name, needs))} as {quote_name(table)}"


def truncate(run: Execution, statement: Truncate) -> WriteResult:
    """Delete all rows, or those of one partition."""
    table = run.changed(statement.name)
    if statement.partition:
        return table.handle.delete_partitions([partition_of(run, table, statement.partition)])
    return table.handle.insert_overwrite_table(table.schema.empty_table())


def drop_partitions(run: Execution, statement: DropPartitions) -> WriteResult:
    """Delete all rows of the named partitions."""
    table = run.changed(statement.name)
    return table.handle.delete_partitions([partition_of(run, table, partition) for partition in statement.partitions])
