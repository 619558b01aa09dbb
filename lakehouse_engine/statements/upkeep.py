"""Maintenance statements of other engines."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakehouse_engine.errors import RestoreError
from lakehouse_engine.read.moments import moment_of
from lakehouse_engine.sql.grammar.lexer import quote_name
from lakehouse_engine.sql.grammar.statements import Call, NothingToDo, RestoreTable, ShowIndexes
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
    """None: there are no indexes of the metadata table. Raises `TableNotFoundError`."""
    run.catalog.table(run.pins.name(statement.name))
    return run.rows(_INDEX_COLUMNS, [])
