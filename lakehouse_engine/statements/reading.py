"""Statements that belong together: what they read is one state of each table, and what is written of it names that state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.sql.binding.needs import rows_where
from lakehouse_engine.sql.grammar.references import Parts
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.dispatch import execute


class Reading:
    """Made by `Lakehouse.reading`. A write that finds what was read changed raises `ChangedSinceReadError`: then begin with a new one."""

    def __init__(self, run: Execution) -> None:
        self._run = replace(run, repeats=0)

    def sql(self, text: str, args: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """As `Lakehouse.sql`, but that every table is read as it was when this reading met it first."""
        return execute(replace(self._run, args=args), text)

    def stored_rows(self, parts: Parts, where: str | None = None, called: str = "") -> DataFrame:
        """The table's rows with their meta columns. At least those for which the condition `where` is true, in which the table is called
        `called`: files of which statistics or partition paths say that none of these is in them are not read.
        """
        return self._run.pins.stored_rows(self._run.pins.name(parts), self._run.reads, rows_where(where, called))

    def wrote(self, parts: Parts, instant: str) -> None:
        """Say that a table that was read has a write of one's own: what is read of it next has it."""
        self._run.reads.wrote(self._run.catalog.table(self._run.pins.name(parts)), instant)

    def expected(self, parts: Parts) -> ExpectedState | None:
        """What was read of a table, as the argument `expected` of its writes; None where its newest rows were not."""
        return self._run.expected(parts)
