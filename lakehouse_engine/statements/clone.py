"""CREATE TABLE ... CLONE."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from lakehouse_engine.catalog.clone import Clone, clone_relation
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.services.clone import CloneFiles
from lakehouse_engine.spark.frames.moments import computed_moment
from lakehouse_engine.spark.session import runner_for
from lakehouse_engine.sql.grammar.statements import CloneTable
from lakehouse_engine.statements.context import Execution
from lakehouse_engine.statements.elsewhere import source_of


def clone_table(run: Execution, statement: CloneTable) -> WriteResult | None:
    """Raises as `clone_relation`, and `TableNotFoundError` if the source is a view or does not exist."""
    there, parts, prefix = source_of(run, statement.source)
    source = there.catalog.table(there.pins.name(parts))
    as_of: str | datetime | None = statement.as_of
    if statement.as_of is not None and statement.is_typed:
        as_of = computed_moment(run.spark, statement.as_of, None, f"TIMESTAMP AS OF {statement.as_of}")
    wanted = Clone(
        source,
        run.pins.name(statement.name),
        as_of,
        CloneFiles.of(statement.files),
        statement.or_replace,
        statement.if_not_exists,
        None if there is run else there.catalog,
        f"{prefix}{source}",
    )
    runner_of = partial(runner_for, run.spark)
    return clone_relation(run.catalog, wanted, there.open_table(source).state, runner_of, run.pins.options)
