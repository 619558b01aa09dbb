"""Maintenance statements of other engines."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame

from lakehouse_engine.errors import RestoreError
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.statements import Call, CreateIndex, DropIndex, NothingToDo, RestoreTable, ShowIndexes
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.procedures import call

_INDEX_COLUMNS = ("index_name", "col_name", "index_type", "col_options", "options")
"""Hudi's columns of SHOW INDEXES."""


def nothing_to_do(run: Execution, statement: NothingToDo) -> DataFrame:
    """A note that the statement does nothing. Raises `TableNotFoundError`."""
    name = run.catalog.table(run.pins.name(statement.name))
    return run.rows(["note"], [[f"{statement.statement} has nothing to do on {name}: {statement.because}"]])


def restore_table(run: Execution, statement: RestoreTable) -> DataFrame:
    """Restore to the newest write up to a moment; answers like `restore_to_instant`. Raises as `HoodieTable.restore`."""
    state = run.table(statement.name).state
    moment = moment_of(state, statement.to)
    newest = state.timeline.completed().writes().up_to(moment).last()
    if newest is None:
        message = f"the table has no write up to {moment} on its timeline to be restored to; CALL show_commits shows those there are"
        raise RestoreError(message, table=state.config.name)
    name = ".".join(map(quote_name, statement.name))
    return call(run, Call("restore_to_instant", (("table", name), ("instant_time", newest.requested_time))))


def show_indexes(run: Execution, statement: ShowIndexes) -> DataFrame:
    """Indexes of the metadata table; one that is only planned has the instant of its plan as the option `planned`.

    Raises `TableNotFoundError`.
    """
    found = run.table(statement.name).indexes()
    told = [{**one.options, **({} if one.planned is None else {"planned": one.planned})} for one in found]
    options = [json.dumps(one) if one else "" for one in told]
    rows = zip(found, options, strict=True)
    return run.rows(_INDEX_COLUMNS, [(one.name, ",".join(one.columns), one.stored_as or one.type, "", given) for one, given in rows])


def create_index(run: Execution, statement: CreateIndex) -> None:
    """Build an index. Raises as `HoodieTable.create_index`."""
    table = run.table(statement.name)
    spelled = {name.lower(): name for name in table.schema.names}
    columns = None if statement.columns is None else [spelled.get(name.lower(), name) for name in statement.columns]
    options = dict(statement.options)
    table.create_index(statement.index, columns=columns, type=statement.kind, options=options, if_not_exists=statement.if_not_exists)


def drop_index(run: Execution, statement: DropIndex) -> None:
    """Drop an index. Raises as `HoodieTable.drop_index`."""
    run.table(statement.name).drop_index(statement.index, if_exists=statement.if_exists)
