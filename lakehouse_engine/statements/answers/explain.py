"""EXPLAIN: Spark's plan, and what the engine skipped of each table before planning."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from lakehouse_engine.options.read import LOGS_ON_DRIVER
from lakehouse_engine.read.query import plan_query, read_options
from lakehouse_engine.read.skipping import Opened
from lakehouse_engine.spark.frames.statement_views import TableRead
from lakehouse_engine.sql.grammar.statements import Explain
from lakehouse_engine.statements.context import Execution


def explain(run: Execution, statement: Explain) -> DataFrame:
    """One row with the column `plan`. Runs nothing, but reads what planning reads: logs decoded by the driver, and footers."""
    seen: list[TableRead] = []
    run.reads.seen = seen
    plan = run.query(statement.text).collect()[0][0]
    run.reads.seen = None
    text = "\n".join(line for read in seen for line in _told(run, read))
    return run.rows(["plan"], [[f"{plan.rstrip()}\n\n== Tables ==\n{text}\n"]])


def _told(run: Execution, read: TableRead) -> Iterator[str]:
    whole = Opened.by(plan_query(read.state, read.query, run.pins.options))
    planned, opened = Opened.by(read.planned), Opened.by(read.read)
    yield f"{read.name} ({_query(read)})"
    yield f"  condition: {read.condition or 'none that is asked before Spark does'}"
    yield f"  partitions: {opened.partitions} of {whole.partitions}"
    by = [
        f"{count} ruled out by {what}"
        for count, what in ((whole.files - planned.files, "partition"), (planned.files - opened.files, "statistics"))
        if count
    ]
    why = f" ({', '.join(by)})" if by else ""
    yield f"  base files: {opened.files} of {whole.files}, {opened.file_bytes:,} of {whole.file_bytes:,} bytes{why}"
    if whole.logs:
        yield f"  log files: {opened.logs} of {whole.logs}, {opened.log_bytes:,} of {whole.log_bytes:,} bytes{_decoded(run, read)}"


def _query(read: TableRead) -> str:
    query, instant = read.query, read.read.instant or "no commit"
    if query.kind == "incremental":
        return f"changes after {query.begin} to {query.end or instant}"
    return f"{query.kind.replace('_', '-')} as of {instant}"


def _decoded(run: Execution, read: TableRead) -> str:
    if not read.read.logged:
        return ""
    limit = LOGS_ON_DRIVER.read(read_options(read.state, run.pins.options))
    return ", decoded by the driver" if read.read.log_size <= limit else ", decoded by executors"
