"""Groups of statements that read one state of each table, and write against that state."""

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
    """Made by `Lakehouse.reading`. A write raises `ChangedSinceReadError` if what was read has changed; start a new reading then."""

    def __init__(self, run: Execution) -> None:
        self._run = replace(run, repeats=0)

    def sql(self, text: str, args: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """Like `Lakehouse.sql`, with every table in the state in which this reading first met it."""
        return execute(replace(self._run, args=args), text)

    def stored_rows(self, parts: Parts, where: str | None = None, called: str = "") -> DataFrame:
        """The table's rows with meta columns; at least those that match `where`, in which the table is named `called`. Files that cannot
        hold such rows, by statistics or partition path, are not read.
        """
        return self._run.pins.stored_rows(self._run.pins.name(parts), self._run.reads, rows_where(where, called))

    def wrote(self, parts: Parts, instant: str) -> None:
        """Record an own write of a table that was read, so that the next read of it includes the write."""
        self._run.reads.wrote(self._run.catalog.table(self._run.pins.name(parts)), instant)

    def expected(self, parts: Parts) -> ExpectedState | None:
        """What was read of a table, for the argument `expected` of its writes; None if its newest rows were not read."""
        return self._run.expected(parts)
