"""CALL: runs a procedure of the engine and returns a DataFrame."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.registry import help_rows, prepare
from lakehouse_engine.statements.context import Execution


def call(run: Execution, statement: Call) -> DataFrame:
    """Run a procedure at once. The statement is checked before the table is looked up."""
    if statement.procedure == "help":
        return run.rows(["procedure", "arguments"], help_rows(statement))
    prepared = prepare(statement)
    return abilities_of(run.spark).frame(prepared.answer(run.table(prepared.table).services))
