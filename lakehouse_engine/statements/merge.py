"""MERGE INTO: one join computes for every row which clause applies and what it makes of it; one commit writes the result.

 1. join target and source; the kind of join follows from the WHEN clauses
 2. number the first clause whose side and condition hold, row by row; rows without one drop out
 3. update and insert clauses give whole rows, which are upserted; delete clauses give keys, which are deleted in the same commit
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakehouse_engine.errors import SqlError, UnsupportedSqlError
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.record.keys.keygen import root_columns
from lakehouse_engine.spark.schema import to_spark_type
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs, rows_where
from lakehouse_engine.sql.binding.partitions_read import partitions_read
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.statements import Merge, MergeClause
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState

_PRESENT, _CLAUSE = "__lakehouse_present", "__lakehouse_clause"
_OPTIONS = {"lakehouse.duplicate.source.keys": "ERROR"}


def merge(run: Execution, statement: Merge) -> WriteResult:
    """Carry out a MERGE. Raises `DuplicateKeyError` when two source rows would write one key, `UnsupportedSqlError` as it says."""
    table = run.table(statement.name)
    _check(statement, table)
    target = run.target(statement.name, _needs(statement))
    source = run.query(f"select *, true as {_PRESENT} from {statement.source}{_alias(statement.source_alias)}")
    # Of a name the plan is made once, and `rand()` in it has one seed; Spark Connect makes that of a query anew for each frame over it.
    joined = run.query(_joined(statement, table.schema, target, run.pins.keep(source), source.columns))
    joined = run.spark.table(run.pins.keep(joined)).cache()
    run.narrow(statement.name, lambda state: _partitions_read(statement, state))
    expected = run.expected(statement.name)
    try:
        # Of what is cached it is known how large it is.
        joined.count()
        upserts = [number for number, clause in enumerate(statement.clauses) if clause.action != "delete"]
        deletes = [number for number, clause in enumerate(statement.clauses) if clause.action == "delete"]
        rows = joined.where(joined[_CLAUSE].isin(upserts)).select(*map(quote_name, table.schema.names))
        if not deletes:
            return table.upsert(rows, as_given=True, options=_OPTIONS, expected=expected)
        keys = joined.where(joined[_CLAUSE].isin(deletes)).select(RECORD_KEY, PARTITION_PATH).distinct()
        return table.upsert(rows, delete_keys=keys, as_given=True, options=_OPTIONS, expected=expected)
    finally:
        joined.unpersist()


def _needs(statement: Merge) -> Needs:
    """Stored rows that cannot be matched are not needed, unless they are changed for it."""
    if any(clause.when == "not_matched_by_source" for clause in statement.clauses):
        return EVERYTHING
    return Needs(None, rows_where(statement.condition, statement.alias or statement.name[-1], qualified=True))


def _partitions_read(statement: Merge, state: TableState) -> frozenset[str] | None:
    """Partitions outside of which no stored row can be matched; all, where stored rows without a match are changed, too."""
    if any(clause.when == "not_matched_by_source" for clause in statement.clauses):
        return None
    return partitions_read(statement.condition, statement.alias or statement.name[-1], state, qualified=True)


def _alias(name: str | None) -> str:
    return "" if name is None else f" as {quote_name(name)}"


def _check(statement: Merge, table: HoodieTable) -> None:
    config = table.config
    if not config.record_key_fields:
        raise UnsupportedSqlError("MERGE needs a table with a record key; this one has generated keys", table=config.name)
    if statement.schema_evolution:
        raise UnsupportedSqlError("MERGE WITH SCHEMA EVOLUTION is not supported; add the columns with ALTER TABLE first", table=config.name)
    keys = {name.lower() for name in root_columns(config.record_key_fields, table.schema.names)}
    known = {name.lower() for name in table.schema.names}
    for clause in statement.clauses:
        for name, _ in clause.assignments or ():
            column = name.rsplit(".", 1)[-1].strip("`").lower()
            if column not in known:
                raise SqlError(f"the table has no column {name!r}; it has {', '.join(table.schema.names)}", column=name)
            if clause.action == "update" and column in keys:
                raise UnsupportedSqlError(f"MERGE cannot change the key column {name!r}; delete the row and insert it anew", column=name)


def _joined(statement: Merge, schema: pa.Schema, target: str, source: str, source_columns: Sequence[str]) -> str:
    left = quote_name(statement.alias or statement.name[-1])
    right = quote_name(statement.source_alias or "__lakehouse_source")
    offered = {name.lower(): name for name in source_columns}
    columns = [_column(statement, field, left, right, offered) for field in schema]
    whens = " ".join(f"when {_applies(clause, left, right)} then {number}" for number, clause in enumerate(statement.clauses))
    keys = f"{left}.{RECORD_KEY} as {RECORD_KEY}, {left}.{PARTITION_PATH} as {PARTITION_PATH}"
    selected = ", ".join([f"case {whens} end as {_CLAUSE}", keys, *columns])
    join = f"{quote_name(target)} as {left} {_kind(statement)} join {quote_name(source)} as {right} on {statement.condition}"
    return f"select * from (select {selected} from {join}) where {_CLAUSE} is not null"


def _kind(statement: Merge) -> str:
    only_source = any(clause.when == "not_matched" for clause in statement.clauses)
    only_target = any(clause.when == "not_matched_by_source" for clause in statement.clauses)
    return {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}[only_source, only_target]


def _applies(clause: MergeClause, left: str, right: str) -> str:
    stored, given = f"{left}.{RECORD_KEY} is not null", f"{right}.{_PRESENT} is not null"
    side = {
        "matched": f"{stored} and {given}",
        "not_matched": f"not {stored} and {given}",
        "not_matched_by_source": f"{stored} and not {given}",
    }[clause.when]
    return side if clause.condition is None else f"{side} and ({clause.condition})"


def _column(statement: Merge, field: pa.Field, left: str, right: str, offered: dict[str, str]) -> str:
    """The column's value under each clause. Spark lets later columns of a select refer to the clause number by its alias."""
    name = quote_name(field.name)
    values = []
    for number, clause in enumerate(statement.clauses):
        value = _value(clause, field.name, left, right, offered)
        values.append(f"when {number} then cast({value} as {to_spark_type(field.type).simpleString()})")
    return f"case {_CLAUSE} {' '.join(values)} end as {name}"


def _value(clause: MergeClause, name: str, left: str, right: str, offered: dict[str, str]) -> str:
    stored = f"{left}.{quote_name(name)}"
    if clause.action == "delete":
        return stored
    if clause.assignments is None:
        if name.lower() not in offered:
            raise SqlError(f"the source of MERGE has no column {name!r} for the clause with *", column=name)
        return f"{right}.{quote_name(offered[name.lower()])}"
    assigned = {column.rsplit(".", 1)[-1].strip("`").lower(): text for column, text in clause.assignments}
    given = assigned.get(name.lower())
    if given is not None:
        return f"({given})"
    return stored if clause.action == "update" else "null"
