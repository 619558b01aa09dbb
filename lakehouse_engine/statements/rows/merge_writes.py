"""Writes the result of a MERGE's join: by key, or by row if the table holds keys more than once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, expr, lit
from pyspark.sql.functions import max as greatest

from lakehouse_engine.errors import DuplicateKeyError, RepeatedKeyError
from lakehouse_engine.model.keys import COMMIT_SEQNO, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.spark.generated import with_generated
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.statements import Merge, MergeClause
from lakehouse_engine.statements.context import EVOLVE, ONE_ROW_A_KEY, Execution, Target
from lakehouse_engine.statements.rows.by_row import PLACE, by_row
from lakehouse_engine.statements.rows.moving import check_arrivals, may_move

if TYPE_CHECKING:
    from lakehouse_engine.statements.rows.merge import MergeColumns

KEY = (RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True, slots=True)
class MergeRun:
    """One MERGE. `columns` are those that it writes."""

    run: Execution
    statement: Merge
    table: Target
    columns: MergeColumns


def written_by_key(merge: MergeRun, joined: DataFrame) -> WriteResult:
    """One upsert, with keys to delete. `joined` has the `KEY` of stored rows.

    Raises `DuplicateKeyError` if two rows to store have one key, or a changed key is stored more than once.
    """
    changes, table, columns = _Changes.of(merge, joined), merge.table, merge.columns
    _check_once(merge, joined)
    # Rows updated in place stay: within a partition, rows to write win over deletions of their key.
    keys = joined.where(joined[columns.clause].isin(changes.leaving)).select(*KEY).distinct() if changes.leaving else None
    given_keys = not table.config.record_key_fields
    names = [*([RECORD_KEY] if given_keys else []), *map(quote_name, columns.schema.names)]
    return table.handle.upsert(
        changes.rows.select(*names),
        delete_keys=keys,
        given_keys=given_keys,
        as_given=True,
        single_rows=True,
        options=changes.options,
        expected=merge.run.expected(merge.statement.name),
    )


def written_by_row(merge: MergeRun, joined: DataFrame, refused: DuplicateKeyError) -> WriteResult:
    """Change or delete stored rows by position. `joined` has their key and `PLACE`; `refused` is the error of the change by key.

    Raises `DuplicateKeyError` for a stored row that two source rows match, one of which updates it, and for an inserted row whose key
    another row has.
    """
    changes, table, columns = _Changes.of(merge, joined), merge.table, merge.columns
    stored = joined.where(joined[COMMIT_SEQNO].isNotNull())
    is_update = joined[columns.clause].isin(changes.updates).cast("int")
    matched = stored.groupBy(RECORD_KEY, *PLACE).agg(count(lit(1)).alias("matches"), greatest(is_update).alias("updated"))
    if found := matched.where("matches > 1 and updated = 1").select(RECORD_KEY).head(1):
        message = f"several rows of the source match the row of the key {found[0][0]!r}, and one of them updates it. Nothing was written"
        raise _other(refused, message, table)
    _check_inserted(merge, changes.rows.where(changes.rows[RECORD_KEY].isNull()), stored, refused)
    rows = changes.rows.select(*map(quote_name, columns.schema.names))
    expected = merge.run.expected(merge.statement.name)
    return by_row(table.handle, rows, stored.select(*PLACE).distinct(), expected, options=changes.options)


@dataclass(frozen=True, slots=True)
class _Changes:
    """Rows to store, options of their write, and the numbers of clauses that update rows and that remove rows."""

    rows: DataFrame
    options: Mapping[str, str]
    updates: Sequence[int]
    leaving: Sequence[int]

    @classmethod
    def of(cls, merge: MergeRun, joined: DataFrame) -> _Changes:
        """Raises as `check_arrivals`."""
        table, columns, clauses = merge.table, merge.columns, list(enumerate(merge.statement.clauses))
        rows = _rows_to_write(merge, joined)
        options = ONE_ROW_A_KEY if columns.schema == columns.stored else {**ONE_ROW_A_KEY, **EVOLVE}
        moving = [number for number, clause in clauses if _may_move(clause, table, columns)]
        if moving:
            changed = joined.where(joined[RECORD_KEY].isNotNull())
            check_arrivals(merge.run, merge.statement.name, table, rows.where(rows[columns.clause].isin(moving)), changed)
        updates = [number for number, clause in clauses if clause.action == "update"]
        leaving = [number for number, clause in clauses if clause.action == "delete" or number in moving]
        return cls(rows, options, updates, leaving)


def _rows_to_write(merge: MergeRun, joined: DataFrame) -> DataFrame:
    clauses, columns = merge.statement.clauses, merge.columns
    upserts = [number for number, clause in enumerate(clauses) if clause.action != "delete"]
    rows = joined.where(joined[columns.clause].isin(upserts))
    for one in merge.table.generated:
        silent = [number for number in upserts if not _gives(clauses[number], one.column, columns)]
        rows = with_generated(rows, [one], columns.schema, merge.table.config, unless=rows[columns.clause].isin(silent))
    return rows


def _may_move(clause: MergeClause, table: Target, columns: MergeColumns) -> bool:
    """True if rows that the clause updates may leave their partition, from which they must be deleted."""
    assigned = columns.given if clause.assignments is None else [name for name, _ in clause.assignments]
    return clause.action == "update" and may_move(table, assigned)


def _gives(clause: MergeClause, column: str, columns: MergeColumns) -> bool:
    """True if the clause has a value for a generated column."""
    if clause.assignments is None:
        return column.lower() in columns.given
    return column.lower() in {name.lower() for name, _ in clause.assignments}


def _check_once(merge: MergeRun, joined: DataFrame) -> None:
    """Raise `DuplicateKeyError` for a key whose rows are partly updated and partly deleted."""
    clauses, clause_of = merge.statement.clauses, joined[merge.columns.clause]
    deletes = [number for number, clause in enumerate(clauses) if clause.action == "delete"]
    if not deletes or len(deletes) == len(clauses):
        return
    deleted = joined.where(clause_of.isin(deletes)).select(*KEY)
    updated = joined.where(~clause_of.isin(deletes))
    both = updated.join(deleted, list(KEY), "left_semi").select(RECORD_KEY).head(1)
    if both:
        message = f"two rows of the source match the row of the key {both[0][0]!r}: one updates it, and one deletes it"
        raise DuplicateKeyError(message, table=merge.table.config.name)


def _check_inserted(merge: MergeRun, new: DataFrame, changed: DataFrame, refused: DuplicateKeyError) -> None:
    """Raise `DuplicateKeyError` if two new rows have one key, or an unchanged stored row has one of their keys."""
    table, config = merge.table, merge.table.config
    if not config.record_key_fields:
        return
    fields = config.record_key_fields if table.keys_are_global else (*config.record_key_fields, *config.partition_fields)
    names = [f"key_{number}" for number in range(len(fields))]
    paths = (".".join(map(quote_name, field.split("."))) for field in fields)
    key = [expr(path).alias(name) for path, name in zip(paths, names, strict=True)]
    inserted = new.select(*key)
    if inserted.groupBy(*names).count().where("count > 1").head(1):
        raise _other(refused, "two rows that MERGE inserts have one key. Nothing was written", table)
    stored = merge.run.spark.table(merge.run.target(merge.statement.name))
    left = stored.join(changed.select(*PLACE).distinct(), list(PLACE), "left_anti").select(*key)
    same = reduce(lambda a, b: a & b, (col(f"new.{name}").eqNullSafe(col(f"left.{name}")) for name in names))
    if found := inserted.alias("new").join(left.alias("left"), same, "left_semi").head(1):
        shown = ", ".join(f"{field}={value!r}" for field, value in zip(fields, found[0], strict=True))
        message = f"MERGE inserts a row of the key {shown}, which is stored, and changes rows of a key that is stored more than once"
        raise _other(refused, f"{message}: let ON say that keys are equal, and no more. Nothing was written", table)


def _other(refused: DuplicateKeyError, message: str, table: Target) -> DuplicateKeyError:
    """Error to raise if a change by row is wrong too: the one of the change by key, unless that only said that keys repeat."""
    return DuplicateKeyError(message, table=table.config.name) if isinstance(refused, RepeatedKeyError) else refused
