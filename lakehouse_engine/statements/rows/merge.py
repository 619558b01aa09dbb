"""MERGE INTO: one join computes for every row which clause applies and its result; one commit writes them.

1. join target and source; the WHEN clauses determine the kind of join
2. number the first clause whose side and condition match, row by row; rows without one drop out
3. update and insert clauses give whole rows, which are upserted; delete clauses give keys, which are deleted in the same commit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from lakehouse_engine.errors import DuplicateKeyError, SqlError, UnsupportedSqlError
from lakehouse_engine.model.constraints import Generated
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.record.nested import with_new_fields
from lakehouse_engine.record.schema import check_reserved
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.spark.schema import free_name, to_arrow_type, to_spark_type
from lakehouse_engine.spark.settings import casts_refuse
from lakehouse_engine.sql.binding.needs import EVERYTHING, Needs, rows_where
from lakehouse_engine.sql.binding.partitions_read import partitions_read
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.statements import Merge, MergeClause
from lakehouse_engine.statements.columns import overlaps
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.defaults import Defaults, defaults_of, merged
from lakehouse_engine.statements.generated import unassigned
from lakehouse_engine.statements.nested import NESTED, Edits, by_field_names, conformed, edited, in_fields_order, stored_value
from lakehouse_engine.statements.rows.by_row import PLACE, check_has_places, held
from lakehouse_engine.statements.rows.merge_writes import KEY, MergeRun, written_by_key, written_by_row
from lakehouse_engine.view.table_state import TableState


def merge(run: Execution, statement: Merge) -> WriteResult:
    """Run a MERGE. Raises `DuplicateKeyError` if two source rows would write one key, `UnsupportedSqlError` with its reason."""
    table = run.changed(statement.name)
    _check_clauses(statement, table.config)
    defaults, generated = defaults_of(table.config, table.schema), table.generated
    statement = merged(_without_defaults_of(generated, statement), defaults)
    source = run.query(f"select * from {statement.source}{_alias(statement.source_alias)}")
    columns = MergeColumns.of(statement, table.schema, source, defaults, generated)
    source = source.select("*", lit(True).alias(columns.present))
    target = run.target(statement.name, _needs(statement))
    # A named view is planned once, so that its `rand()` has one seed; Spark Connect plans a query again for each frame over it.
    given = run.pins.keep(source)
    statement = _by_field_names(run, statement, columns, target, given)
    run.narrow(statement.name, lambda state: _partitions_read(statement, state))
    writing = MergeRun(run, statement, table, columns)
    with held(run, _joined(statement, columns, target, given, KEY)) as joined:
        try:
            return written_by_key(writing, joined)
        except DuplicateKeyError as error:
            check_has_places(table.config, error)
            refused = error
    with held(run, _joined(statement, columns, target, given, (RECORD_KEY, *PLACE))) as joined:
        return written_by_row(writing, joined, refused)


def _without_defaults_of(generated: Sequence[Generated], statement: Merge) -> Merge:
    """Remove DEFAULT for generated columns, which are computed like in clauses that do not name them."""
    clauses = (
        clause if clause.assignments is None else replace(clause, assignments=unassigned(clause.assignments, generated))
        for clause in statement.clauses
    )
    return replace(statement, clauses=tuple(clauses))


def _by_field_names(run: Execution, statement: Merge, columns: MergeColumns, target: str, source: str) -> Merge:
    left, right = _sides(statement)
    both = f"{quote_name(target)} as {left} cross join {quote_name(source)} as {right}"
    clauses = (
        clause
        if clause.assignments is None
        else replace(clause, assignments=by_field_names(clause.assignments, columns.stored, partial(run.types_of, source=both)))
        for clause in statement.clauses
    )
    return replace(statement, clauses=tuple(clauses))


def _sides(statement: Merge) -> tuple[str, str]:
    """Names of target and source in the join."""
    return quote_name(statement.alias or statement.name[-1]), quote_name(statement.source_alias or "__lakehouse_source")


def _needs(statement: Merge) -> Needs:
    """Rows of the target that the merge needs: those that can match, or all if unmatched ones are changed."""
    if any(clause.when == "not_matched_by_source" for clause in statement.clauses):
        return EVERYTHING
    return Needs(None, rows_where(statement.condition, statement.alias or statement.name[-1], qualified=True))


def _partitions_read(statement: Merge, state: TableState) -> frozenset[str] | None:
    """Partitions that can hold matching rows; all, if stored rows without a match are changed too."""
    if any(clause.when == "not_matched_by_source" for clause in statement.clauses):
        return None
    return partitions_read(statement.condition, statement.alias or statement.name[-1], state, qualified=True)


def _alias(name: str | None) -> str:
    return "" if name is None else f" as {quote_name(name)}"


def _check_clauses(statement: Merge, config: TableConfig) -> None:
    for clause in statement.clauses:
        for name, _ in clause.assignments or ():
            if clause.action == "insert" and "." in name:
                raise UnsupportedSqlError(f"INSERT of MERGE gives whole columns, and {name!r} is inside of one", column=name)
            if clause.action == "update" and overlaps(tuple(name.split(".")), config.record_key_fields):
                raise UnsupportedSqlError(f"MERGE cannot change the key column {name!r}; delete the row and insert it anew", column=name)


@dataclass(frozen=True, slots=True)
class MergeColumns:
    """What a MERGE writes. `schema`: the table's columns after it; `stored`: before; `given`: source names by lower case; `kinds`: types of
    those that clauses with `*` take apart.
    """

    schema: pa.Schema
    stored: pa.Schema
    given: Mapping[str, str]
    kinds: Mapping[str, pa.DataType]
    evolves: bool
    defaults: Defaults
    generated: frozenset[str]
    """In lower case; computed unless a clause gives them."""
    checks: bool
    """As in `Edits`."""

    @property
    def present(self) -> str:
        """A column added to every source row: null means that there is no source row."""
        return free_name("__lakehouse_present", self.given)

    @property
    def clause(self) -> str:
        """The column with the number of the clause that applies."""
        return free_name("__lakehouse_clause", [*self.schema.names, *self.given])

    @classmethod
    def of(
        cls, statement: Merge, stored: pa.Schema, source: DataFrame, defaults: Defaults, generated: Sequence[Generated]
    ) -> MergeColumns:
        """WITH SCHEMA EVOLUTION: adds source columns and nested fields that clauses with `*` or assignments by name ask for.

        Raises `SqlError` for an assignment to a column that neither side has, and typed errors for columns that a table cannot have.
        """
        evolves = statement.schema_evolution
        known = {name.lower() for name in stored.names}
        given = {field.name.lower(): field for field in source.schema.fields}
        named = {name.lower().split(".")[0] for clause in statement.clauses for name, _ in clause.assignments or ()}
        whole = any(clause.assignments is None for clause in statement.clauses)
        new = [name for name in given if evolves and name not in known and (whole or name in named)]
        looked_into = [name for name, field in given.items() if whole and name in known and isinstance(field.dataType, NESTED)]
        kinds = {name: to_arrow_type(given[name].dataType, given[name].name) for name in (*new, *looked_into)}
        check_reserved(canonical_schema(pa.schema([pa.field(given[name].name, kinds[name]) for name in new])))
        offered = [pa.field(given[name].name, kinds[name]) for name in kinds] if evolves else []
        schema = canonical_schema(pa.schema(with_new_fields(list(stored), offered)), allow_timestamp_ntz=True)
        unknown = sorted(named - {name.lower() for name in schema.names})
        if unknown:
            raise SqlError(f"the table has no column {unknown[0]!r}; it has {', '.join(stored.names)}", column=unknown[0])
        computed = frozenset(one.column.lower() for one in generated)
        names = {name: field.name for name, field in given.items()}
        return cls(schema, stored, names, kinds, evolves, defaults, computed, not casts_refuse(source.sparkSession))


def _joined(statement: Merge, columns: MergeColumns, target: str, source: str, place: Sequence[str]) -> str:
    """Query of the rows to which a clause applies, with those meta columns of the stored row."""
    left, right = _sides(statement)
    made = [_column(statement, field, left, right, columns) for field in columns.schema]
    whens = " ".join(f"when {_applies(clause, left, right, columns)} then {number}" for number, clause in enumerate(statement.clauses))
    selected = ", ".join([f"case {whens} end as {columns.clause}", *(f"{left}.{name} as {name}" for name in place), *made])
    join = f"{quote_name(target)} as {left} {_kind(statement)} join {quote_name(source)} as {right} on {statement.condition}"
    return f"select * from (select {selected} from {join}) where {columns.clause} is not null"


def _kind(statement: Merge) -> str:
    only_source = any(clause.when == "not_matched" for clause in statement.clauses)
    only_target = any(clause.when == "not_matched_by_source" for clause in statement.clauses)
    return {(False, False): "inner", (True, False): "right", (False, True): "left", (True, True): "full"}[only_source, only_target]


def _applies(clause: MergeClause, left: str, right: str, columns: MergeColumns) -> str:
    stored, given = f"{left}.{RECORD_KEY} is not null", f"{right}.{columns.present} is not null"
    side = {
        "matched": f"{stored} and {given}",
        "not_matched": f"not {stored} and {given}",
        "not_matched_by_source": f"{stored} and not {given}",
    }[clause.when]
    return side if clause.condition is None else f"{side} and ({clause.condition})"


def _column(statement: Merge, field: pa.Field, left: str, right: str, columns: MergeColumns) -> str:
    """The column's value under each clause. Spark lets later columns of a select refer to the clause number by alias."""
    name, kind = quote_name(field.name), to_spark_type(field.type).simpleString()
    stored = f"cast(null as {kind})"
    if field.name in columns.stored.names:
        stored = conformed(f"{left}.{name}", columns.stored.field(field.name).type, field.type)
    values = []
    for number, clause in enumerate(statement.clauses):
        value = _value(clause, field, stored, right, columns)
        kept = value == stored or (clause.action == "update" and clause.assignments is not None)
        values.append(f"when {number} then {stored_value(value, field.type, checks=columns.checks and not kept)}")
    return f"case {columns.clause} {' '.join(values)} end as {name}"


def _value(clause: MergeClause, field: pa.Field, stored: str, right: str, columns: MergeColumns) -> str:
    if clause.action == "delete":
        return stored
    if clause.assignments is None:
        return _whole(clause, field, stored, right, columns)
    assigning = {tuple(column.lower().split(".")): text for column, text in clause.assignments}
    edits = Edits(assigned=assigning, checks=columns.checks)
    path = (field.name.lower(),)
    if clause.action == "update":
        return edited(stored, field.type, path, edits)
    return f"({edits.assigned[path]})" if path in edits.assigned else "null"


def _whole(clause: MergeClause, field: pa.Field, stored: str, right: str, columns: MergeColumns) -> str:
    """Column of a clause with `*`: the source's, nested fields by name. Raises as `in_fields_order`."""
    kept = stored if clause.action == "update" else None
    name = columns.given.get(field.name.lower())
    if name is None and field.name.lower() in columns.generated:
        return "null"
    if name is None and not columns.evolves:
        raise SqlError(f"the source of MERGE has no column {field.name!r} for the clause with *", column=field.name)
    if name is None:
        return kept or columns.defaults.get(field.name.lower(), "null")
    value, kind = f"{right}.{quote_name(name)}", columns.kinds.get(field.name.lower())
    if kind is None:
        return value
    return conformed(value, kind, field.type, kept) if columns.evolves else in_fields_order(field.name, value, kind, field.type)
