"""Materialized views: tables that hold the rows of a query and store the query.

The query is a table property. The metadata of the commit that wrote the rows says what they were made of: the query's text, the views that
it reads, and the writes of each table. A refresh does nothing if all that is unchanged and determines the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from lakehouse_engine.catalog.catalog import RelationKind
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.errors import SqlError, TableError, TableExistsError, TableNotFoundError, UnsupportedSqlError
from lakehouse_engine.model.order import Order
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from lakehouse_engine.options import LOCK_TIMEOUT_MS, OPTIONS
from lakehouse_engine.spark.internals import is_deterministic
from lakehouse_engine.spark.schema import to_arrow_schema
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import significant, words
from lakehouse_engine.sql.grammar.references import Parts, ReferenceKind, folded, plain
from lakehouse_engine.sql.grammar.relations import FILES_FUNCTION
from lakehouse_engine.sql.grammar.statements import (
    AlterMaterializedView,
    CreateMaterializedView,
    DropMaterializedView,
    RefreshMaterializedView,
)
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.definitions import COMBINE, filled, keep_comments, table_spec
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import set_properties, set_query
from lakehouse_engine.write.create import TableSpec
from lakehouse_engine.write.result import no_change

MADE_OF = "lakehouse.materialized.made.of"
"""Extra metadata of a commit: what its rows were made of. Absent if that does not determine the rows."""
_OF_THE_MOMENT = words(
    "CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME CURDATE NOW LOCALTIMESTAMP CURRENT_TIMEZONE UNIX_TIMESTAMP CURRENT_USER SESSION_USER USER"
    " CURRENT_SCHEMA CURRENT_DATABASE CURRENT_CATALOG RAND RANDN RANDOM RANDSTR UNIFORM UUID SHUFFLE TABLESAMPLE INPUT_FILE_NAME"
    " MONOTONICALLY_INCREASING_ID SPARK_PARTITION_ID VERSION JAVA_METHOD REFLECT TRY_REFLECT GETVARIABLE"
)
"""Words of a query whose result depends on more than rows. Spark's `deterministic` misses what it folds to a constant."""


def create_materialized_view(run: Execution, statement: CreateMaterializedView) -> WriteResult | None:
    """Make it with the query's current rows. Replacing a table with the same keys and partitions is one commit; other relations are
    replaced when the new one is complete.

    Raises `TableExistsError`, and `TableError` for a table whose savepoints would be lost.
    """
    wanted = statement.table
    found = run.catalog.find(run.pins.name(wanted.name))
    if found is not None and wanted.if_not_exists:
        return None
    if found is not None and not wanted.or_replace:
        raise TableExistsError(f"{found[0]} is there already, as a {found[1]}; drop it first", table=found[0])
    name = run.pins.name(wanted.name) if found is None else found[0]
    query = wanted.query or ""
    table = None if found is None or found[1] is RelationKind.VIEW else run.open_table(name)
    expected = None if table is None else ExpectedState.of(table.state)
    rows, made_of = _computed(run, query, name)
    spec = replace(table_spec(name, wanted, to_arrow_schema(rows.schema)), query=query)
    if found is None:
        result = filled(run, name, spec, rows, made_of)
    elif table is not None and expected is not None and _fits(table.config, spec):
        given = {key: value for key, value in spec.properties.items() if key in OPTIONS}
        set_properties(table.storage, given, lock_timeout_ms=LOCK_TIMEOUT_MS.default)  # first: refuses changes to what is fixed at creation
        result = _put(table, rows, made_of, expected)
        set_query(table.storage, query, lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    else:
        result = _in_place_of(run, name, found[1], spec, rows, made_of)
    keep_comments(run, name, wanted)
    return result


def alter_materialized_view(run: Execution, statement: AlterMaterializedView) -> WriteResult:
    """Write the new query's rows in one commit, then store the query; a refresh in between finds another query than the rows are of."""
    name, table, _ = _view(run, statement.name)
    expected = ExpectedState.of(table.state)
    rows, made_of = _computed(run, statement.query, name)
    result = _put(table, rows, made_of, expected)
    set_query(table.storage, statement.query, lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    return result


def refresh_materialized_view(run: Execution, statement: RefreshMaterializedView) -> WriteResult:
    """Write the query's current rows in one commit; none if nothing that it reads has changed, unless `full`."""
    name, table, query = _view(run, statement.name)
    expected = ExpectedState.of(table.state)
    rows, made_of = _computed(run, query, name)
    if made_of and not statement.full and _made_of(table.state) == made_of[MADE_OF]:
        return no_change(table.state, WriteOperationType.INSERT_OVERWRITE_TABLE)
    return _put(table, rows, made_of, expected)


def drop_materialized_view(run: Execution, statement: DropMaterializedView) -> None:
    """Drop a materialized view with its rows."""
    if statement.if_exists and run.catalog.find(run.pins.name(statement.name)) is None:
        return
    name, _, _ = _view(run, statement.name)
    run.catalog.drop_table(name, if_exists=statement.if_exists)


def _view(run: Execution, parts: Parts) -> tuple[RelationName, HoodieTable, str]:
    """Raises `TableNotFoundError` for a name that is anything else."""
    name = run.catalog.table(run.pins.name(parts))
    table = run.open_table(name)
    query = table.config.materialized_query
    if query is None:
        raise TableNotFoundError(f"{name} is a table; a materialized view of that name was expected", table=name)
    return name, table, query


def _computed(run: Execution, query: str, name: RelationName) -> tuple[DataFrame, dict[str, str]]:
    """Rows of the query, and metadata of their commit that says what they are made of."""
    if run.args:
        raise UnsupportedSqlError("the query of a materialized view is kept as it is; write values in the place of its parameters")
    rows = run.query(query)
    if name in run.reads.states:
        raise SqlError(f"the query of the materialized view {name} reads itself", relation=name)
    texts = [*_texts(run, query, set())]
    if not _tells(run, texts, rows):
        return rows, {}
    sources = {str(one): _writes(state) for one, state in sorted(run.reads.states.items())}
    return rows, {MADE_OF: json.dumps({"queries": _digest(texts), "tables": sources}, sort_keys=True)}


def _writes(state: TableState) -> str:
    """All writes, not only the newest: beside other writers, one can complete after a later one."""
    return _digest(Order.by_request().sorted(one.requested_time for one in state.timeline.completed().writes()))


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def _tells(run: Execution, texts: Sequence[str], rows: DataFrame) -> bool:
    """True if the query (with these texts) gives the same rows while its tables are unchanged, as far as is known."""
    if not is_deterministic(rows):
        return False
    return all(_is_of_tables(run, text) for text in texts)


def _is_of_tables(run: Execution, text: str) -> bool:
    found = scan(text).references
    if any(folded(one.parts) == (FILES_FUNCTION,) for one in found):
        return False
    reads = [one for one in found if one.kind is ReferenceKind.READ]
    known = all(run.catalog.kind_of(run.pins.qualified(plain(one.parts))) is not None for one in reads)
    return known and not any(token.keyword in _OF_THE_MOMENT for token in significant(text)) and run.pins.functions.resolved(text) == text


def _texts(run: Execution, text: str, seen: set[RelationName]) -> Iterator[str]:
    """The query, and those of the views that it reads."""
    yield text
    for one in scan(text).references:
        parts = plain(one.parts)
        is_here = one.kind is ReferenceKind.READ and run.pins.elsewhere(parts) is None
        found = run.catalog.find(run.pins.name(parts)) if is_here else None
        if found is not None and found[1] is RelationKind.VIEW and found[0] not in seen:
            seen.add(found[0])
            yield from _texts(run, run.catalog.view(found[0]).sql, seen)


def _made_of(state: TableState) -> str | None:
    newest = state.timeline.completed().writes().last()
    return None if newest is None else state.commit_metadata(newest).extra_metadata.get(MADE_OF)


def _fits(config: TableConfig, spec: TableSpec) -> bool:
    mine = (config.record_key_fields, config.partition_fields, config.ordering_fields, config.table_type)
    return mine == (tuple(spec.record_key), tuple(spec.partition_by), tuple(spec.ordering_fields), spec.stored_type)


def _put(table: HoodieTable, rows: DataFrame, made_of: Mapping[str, str], expected: ExpectedState) -> WriteResult:
    options: dict[str, Any] = dict(COMBINE) if table.config.record_key_fields else {}
    return table.insert_overwrite_table(rows, replace_schema=True, options=options, extra_metadata=dict(made_of), expected=expected)


def _in_place_of(
    run: Execution, name: RelationName, kind: RelationKind, spec: TableSpec, rows: DataFrame, made_of: Mapping[str, str]
) -> WriteResult:
    """The old relation stays until the new one is complete."""

    def may_go(found: RelationName, kind: RelationKind) -> None:
        kept = [str(one.name or one.instant) for one in run.open_table(found).savepoints()] if kind is RelationKind.TABLE else []
        if kept:
            raise TableError(f"{found} would be built anew, and its savepoints lost: {', '.join(kept)}; delete them first", table=found)

    run.catalog.check_moves(name, "replaced")
    may_go(name, kind)
    return filled(run, name, spec, rows, made_of, may_go)
