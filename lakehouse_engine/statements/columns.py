"""ALTER TABLE for columns and nested fields.

Adding, widening or moving a column is a commit without files. Dropping or renaming one rewrites the rows: files are read by column names,
so a dropped column would come back with the next one of its name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa

from lakehouse_engine.catalog.catalog import RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import ConstraintError, OptionError, SchemaIncompatibleError, SqlError, UnsupportedSqlError
from lakehouse_engine.files.schema import table_schema, user_schema
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.keys import DELETED_AT, RECORD_KEY
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.record.merging.soft_deletes import hidden_column
from lakehouse_engine.record.nested import Path, alone, children, field_at, placed, with_new_fields
from lakehouse_engine.record.schema import check_reserved
from lakehouse_engine.record.spark_types import BY_NAME, spark_name
from lakehouse_engine.record.types import canonical_schema, check_names
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.sql.grammar.statements import AddColumns, AlterColumn, ColumnDefinition, DropColumns, RenameColumn
from lakehouse_engine.sql.grammar.types import arrow_type, constraints_of, max_length
from lakehouse_engine.statements.context import Execution, Target
from lakehouse_engine.statements.generated import check_is_free
from lakehouse_engine.statements.nested import Edits, edited
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.alter import evolve_schema, set_constraints

logger = logging.getLogger(__name__)


def constrain(table: HoodieTable, change: Callable[[Constraints], Constraints]) -> None:
    """Set the constraints of a table's columns, if they change."""
    if change(table.config.constraints) != table.config.constraints:
        set_constraints(table.storage, change, lock_timeout_ms=LOCK_TIMEOUT_MS.default)


def add_columns(run: Execution, statement: AddColumns) -> None:
    """Raises `SqlError` for an existing column, `SchemaIncompatibleError` for an invalid name or parent, before anything changes."""
    table = run.changed(statement.name)
    nested = tuple(one for one in statement.columns if "." in one.name)
    kept = _new_constraints(run.pins.name(statement.name), statement.columns, nested)
    for one in nested:
        check_is_free(table.generated, tuple(one.name.split(".")), "cannot be added")
    changes = table.schema
    for column in statement.columns:
        changes = _with_column(changes, column)
    new = [field for field in changes if field.name not in table.schema.names or field != table.schema.field(field.name)]
    places = [(tuple(one.name.split(".")), one.place.after) for one in statement.columns if one.place is not None]
    reduce(lambda schema, one: placed(schema, *one), places, changes)  # raises before anything is stored
    constrain(table.handle, lambda old: replace(old, max_length=(*old.max_length, *kept.max_length)))
    evolve_schema(table.handle.storage, pa.schema(new), places=places, lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    comments = {column.name: column.comment for column in statement.columns if column.comment}
    if comments:
        run.catalog.set_comments(run.pins.name(statement.name), columns=comments)


def _new_constraints(name: RelationName, columns: Iterable[ColumnDefinition], nested: Iterable[ColumnDefinition]) -> Constraints:
    kept = constraints_of(columns)
    if kept.defaults:
        column, text = kept.defaults[0]
        message = (
            f"ADD COLUMN {column} ... DEFAULT {text} of {name}: stored rows would need it. Add the column without it, then"
            f" ALTER COLUMN {column} SET DEFAULT {text}, and UPDATE {name} SET {column} = DEFAULT for the old rows"
        )
        raise UnsupportedSqlError(message, relation=name, column=column)
    if kept.generated:
        first = kept.generated[0]
        message = (
            f"ADD COLUMN {first.column} ... GENERATED ALWAYS AS ({first.expression}) of {name}: stored rows would need it. Make a table"
            " that has it (CREATE TABLE), and INSERT the rows of this one there"
        )
        raise UnsupportedSqlError(message, relation=name, column=first.column)
    if kept.not_null:
        message = "a new column is null in the rows that are there: add it without NOT NULL, fill it, then ALTER COLUMN ... SET NOT NULL"
        raise UnsupportedSqlError(message, column=kept.not_null[0])
    for one in nested:
        _no_length(one.type, one.name)
    return kept


def _no_length(kind: str, column: str) -> None:
    if max_length(kind, column) is not None:
        raise UnsupportedSqlError(f"{kind} of {column}, which is inside of another column, is not kept; use STRING", column=column)


def _with_column(schema: pa.Schema, column: ColumnDefinition) -> pa.Schema:
    """The schema with one more column or field at the end."""
    path: Path = tuple(column.name.split("."))
    siblings = list(schema)
    if len(path) > 1:
        parent, around = field_at(schema, path[:-1])
        path, siblings = (*parent, path[-1]), children(around.type)
    known = next((field.name for field in siblings if field.name.lower() == path[-1].lower()), None)
    if known is not None:
        what = ".".join((*path[:-1], known))
        raise SqlError(f"the table has a column {what!r} already; ALTER COLUMN ... TYPE changes its type", column=what)
    made = pa.field(path[-1], arrow_type(column.type, column.name))
    check_reserved(canonical_schema(pa.schema([made]), allow_timestamp_ntz=True))
    change = alone(schema, path[:-1], made)
    if len(path) == 1:
        return schema.append(change)
    return schema.set(schema.get_field_index(change.name), _grown(schema.field(change.name), change))


def _grown(field: pa.Field, change: pa.Field) -> pa.Field:
    return with_new_fields([field], [change])[0]


def alter_column(run: Execution, statement: AlterColumn) -> None:
    """Raises `SchemaIncompatibleError` for a type in which existing files cannot be read, `UnsupportedSqlError` for one that changes
    nothing.
    """
    name = run.pins.name(statement.name)
    path: Path = tuple(statement.column.split("."))
    if run.catalog.kind_of((name.schema, name.name)) is not RelationKind.VIEW:
        path = field_at(run.changed(statement.name).schema, path)[0]
    if statement.nullable is not None:
        _set_nullable(run, statement, statement.nullable)
    if statement.type is not None or statement.place is not None:
        _set_type(run, statement, path)
    if statement.comment is not None:
        run.catalog.set_comments(name, columns={".".join(path): statement.comment})


def _set_type(run: Execution, statement: AlterColumn, path: Path) -> None:
    table, column = run.changed(statement.name), ".".join(path)
    if statement.type is not None:
        _check_type_stays(table, path)
    old = field_at(table.schema, path)[1]
    new = old if statement.type is None else old.with_type(arrow_type(statement.type, column))
    places = [] if statement.place is None else [(path, statement.place.after)]
    length = None if statement.type is None else max_length(statement.type, column)
    if len(path) > 1:
        _no_length(statement.type or "", column)
    elif length is not None:
        _check_length(table, column, length)
    try:
        changed = evolve_schema(
            table.handle.storage, pa.schema([alone(table.schema, path[:-1], new)]), places=places, lock_timeout_ms=LOCK_TIMEOUT_MS.default
        )
    except SchemaIncompatibleError as error:
        if new == old:
            raise
        message = _no_change(column, old, new, "files written before could not be read as that")
        raise SchemaIncompatibleError(message, column=column) from error
    if statement.type is not None and len(path) == 1:
        constrain(table.handle, lambda kept: kept.with_length(column, length))
    asked = BY_NAME.get((statement.type or "").strip().lower())
    if changed is None and asked is not None and asked.exact is not None:
        message = f"the column {column!r} is {spark_name(old.type)}, as which Hudi stores {asked.name}, too: nothing was changed"
        raise UnsupportedSqlError(message, column=column)
    if changed is None and new.type != old.type:
        raise UnsupportedSqlError(_no_change(column, old, new, "that is narrower, and nothing was changed"), column=column)
    if changed is None:
        logger.info("ALTER COLUMN %s changed nothing: it is %s and stands there already", column, spark_name(old.type))


def _check_type_stays(table: Target, path: Path) -> None:
    check_is_free(table.generated, path, "keeps its type")
    one = table.config.constraints.generated_as(path[0])
    if one is not None:
        message = f"{path[0]!r} keeps its type: it is GENERATED ALWAYS AS ({one.expression}), which may have other values in another one"
        raise UnsupportedSqlError(message, column=path[0])


def _no_change(column: str, old: pa.Field, new: pa.Field, why: str) -> str:
    return (
        f"the column {column!r} is {spark_name(old.type)} and cannot become {spark_name(new.type)}: {why}. Types widen from int to bigint,"
        " float and double; write the table anew for another one (CREATE OR REPLACE TABLE ... AS SELECT)"
    )


def _set_nullable(run: Execution, statement: AlterColumn, nullable: bool) -> None:
    """Set NOT NULL for all later writes; taken back if stored rows violate it."""
    table = run.changed(statement.name)
    if "." in statement.column:
        message = f"NOT NULL of {statement.column}, which is inside of another column, is not kept"
        raise UnsupportedSqlError(message, column=statement.column)
    column = field_at(table.schema, (statement.column,))[1].name
    before = table.config.constraints
    constrain(table.handle, lambda old: old.with_not_null(column, not nullable))
    if nullable or before.is_not_null(column):
        return
    name = quote_name(run.target(statement.name))
    nulls = run.spark.sql(f"select {RECORD_KEY} from {name} where {quote_name(column)} is null").limit(1).toArrow()
    if nulls.num_rows:
        constrain(table.handle, lambda old: old.with_not_null(column, False))
        example = nulls.column(0)[0].as_py()
        raise ConstraintError(
            f"the column {column!r} is null in stored rows, for example of the record key {example!r}; update them before it is NOT NULL",
            column=column,
        )


def _check_length(table: Target, column: str, length: int) -> None:
    old = table.config.constraints.length_of(column)
    if old is None or length < old:
        was = "any number of" if old is None else f"{old:,}"
        message = f"VARCHAR({length}) is narrower than the {was} characters that stored rows may have; it can only grow"
        raise UnsupportedSqlError(message, column=column)


def drop_columns(run: Execution, statement: DropColumns) -> Any:
    """Raises `OptionError` for an unknown column, `UnsupportedSqlError` for a key, partition or ordering column."""
    table = run.changed(statement.name)
    gone = _stored_paths(table, statement)
    if not gone:
        return None
    generated = [one for one in table.generated if (one.column,) not in gone]
    for path in gone:
        _check_is_free(table, path, "cannot be dropped")
        check_is_free(generated, path, "cannot be dropped")
    result = _rewrite(run, statement.name, table, Edits(dropped=frozenset(_folded(path) for path in gone)))
    constrain(table.handle, lambda old: reduce(Constraints.without, (path[0] for path in gone if len(path) == 1), old))
    _forget_comments(run, statement.name, gone)
    return result


def _stored_paths(table: Target, statement: DropColumns) -> list[Path]:
    found = [_stored_path(table, column, statement.if_exists) for column in statement.columns]
    return [path for path in found if path is not None]


def _stored_path(table: Target, column: str, if_exists: bool) -> Path | None:
    try:
        return field_at(table.schema, tuple(column.split(".")))[0]
    except SchemaIncompatibleError as error:
        if if_exists:
            return None
        raise OptionError(error.message, column=column) from error


def rename_column(run: Execution, statement: RenameColumn) -> Any:
    """Raises as `drop_columns`, and `SchemaIncompatibleError` for an invalid name."""
    table = run.changed(statement.name)
    path: Path = tuple(statement.column.split("."))
    _check_is_free(table, path, "keeps its name")
    path = _stored_path(table, statement.column, False) or path
    check_is_free(table.generated, path, "keeps its name")
    siblings = list(table.schema) if len(path) == 1 else children(field_at(table.schema, path[:-1])[1].type)
    check_names([field.with_name(statement.new_name) if field.name == path[-1] else field for field in siblings], ".".join(path[:-1]))
    check_reserved(pa.schema([pa.field(statement.new_name, pa.bool_())]))
    constraints = table.config.constraints
    if len(path) == 1:
        # Set for both names while the rows are rewritten; a name without a column has no effect.
        constrain(table.handle, lambda old: _named(old, constraints, path[0], statement.new_name))
    result = _rewrite(run, statement.name, table, Edits(renamed={_folded(path): statement.new_name}))
    if len(path) == 1:
        constrain(table.handle, lambda old: old.without(path[0]))
    _move_comments(run, statement.name, path, statement.new_name)
    return result


def _named(kept: Constraints, like: Constraints, column: str, name: str) -> Constraints:
    """Copy to `name` what `like` says of another column."""
    kept = kept.with_length(name, like.length_of(column)) if like.length_of(column) is not None else kept
    kept = kept.with_default(name, like.default_of(column)) if like.default_of(column) is not None else kept
    kept = kept.with_generated(name, like.generated_as(column)) if like.generated_as(column) is not None else kept
    return kept.with_not_null(name, True) if like.is_not_null(column) else kept


def _folded(path: Path) -> Path:
    return tuple(part.lower() for part in path)


def overlaps(path: Path, fields: Iterable[str]) -> bool:
    """True if one of the fields (of a table's configuration) is at the path, inside it or around it."""
    own = _folded(path)
    return any(own == other[: len(own)] or other == own[: len(other)] for other in (_folded(tuple(one.split("."))) for one in fields))


def _check_is_free(table: Target, path: Path, what: str) -> None:
    config = table.config
    if overlaps(path, (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)):
        message = f"{'.'.join(path)!r} is a key, partition or ordering column and {what}"
        raise UnsupportedSqlError(message, column=".".join(path))


def _comments_inside(run: Execution, parts: Parts, path: Path) -> dict[str, str]:
    own = ".".join(path)
    comments = run.catalog.comments(run.pins.name(parts)).columns
    return {name: text for name, text in comments.items() if f"{name}.".lower().startswith(f"{own}.".lower())}


def _forget_comments(run: Execution, parts: Parts, paths: Iterable[Path]) -> None:
    gone = {name: "" for path in paths for name in _comments_inside(run, parts, path)}
    if gone:
        run.catalog.set_comments(run.pins.name(parts), columns=gone)


def _move_comments(run: Execution, parts: Parts, path: Path, new_name: str) -> None:
    old = _comments_inside(run, parts, path)
    new = {".".join((*path[:-1], new_name)) + name[len(".".join(path)) :]: text for name, text in old.items()}
    if old:
        run.catalog.set_comments(run.pins.name(parts), columns={**dict.fromkeys(old, ""), **new})


def _rewrite(run: Execution, parts: Parts, table: Target, edits: Edits) -> Any:
    view = quote_name(run.target(parts, deleted=True))
    # The state that is read may be newer than the beginning of the statement: another process may have added a column since.
    state = run.reads.state(run.catalog.table(run.pins.name(parts)), current=False)
    columns = []
    for field in user_schema(state):
        path = (field.name.lower(),)
        if path not in edits.dropped:
            value = edited(quote_name(field.name), field.type, path, edits)
            columns.append(f"{value} as {quote_name(edits.renamed.get(path, field.name))}")
    if hidden_column(state.config, table_schema(state)):
        columns.append(quote_name(DELETED_AT))
    rows = run.spark.sql(f"select {', '.join(columns)} from {view}")
    expected = run.expected(parts)
    return table.handle.insert_overwrite_table(rows, replace_schema=True, redefines=True, drop_deletions=False, expected=expected)
