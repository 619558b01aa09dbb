"""Read-only commands: each reads one state of a table and prints it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, fields, replace
from typing import Any

import click

from lakehouse_engine.api.describe import describe_columns, describe_slice, describe_table
from lakehouse_engine.cli.rows import FORMATS, TABLE_LIMIT, limited, write_rows
from lakehouse_engine.cli.shared import MOST, show_facts, show_rows, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.output import print_json
from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.files.base_file import projected_schema
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.vanished import told_of_crossing
from lakehouse_engine.read.arrow_scan import iter_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.read.skipping import PARTITION, STATISTICS, skipped_slices
from lakehouse_engine.sql.binding.condition import row_condition
from lakehouse_engine.view.history import HistoryEntry, history

AS_OF = "An instant, a date or timestamp in UTC, the name of a savepoint, or -N for the Nth commit before the newest."
WHERE = "Comparisons of a column with a literal, IN (...) and IS NULL, joined by AND."


@click.command()
@click.argument("table")
@with_settings
def info(settings: Settings, table: str) -> None:
    """Say what a table is: type, keys, newest commit, size."""
    show_facts(settings, describe_table(settings.open(table)))


@click.command()
@click.argument("table")
@click.option("--as-of", metavar="WHEN", help=AS_OF)
@with_settings
def schema(settings: Settings, table: str, as_of: str | None) -> None:
    """List the columns."""
    show_rows(settings, describe_columns(settings.open(table), as_of), ("column", "type", "nullable", "max_length", "role"))


@click.command()
@click.argument("table")
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="At most N instants.")
@click.option("--archived", is_flag=True, help="Archived instants, too.")
@with_settings
def timeline(settings: Settings, table: str, limit: int | None, archived: bool) -> None:
    """List the table's instants, newest first, and what each keeps or blocks."""
    rows = [asdict(entry) for entry in history(settings.open(table), limit, archived=archived)]
    show_rows(settings, rows, [field.name for field in fields(HistoryEntry)])


@click.command()
@click.argument("table")
@click.option("--where", metavar="CONDITION", help=f"Say which of them a reading of such rows passes over, and why. {WHERE}")
@with_settings
def files(settings: Settings, table: str, where: str | None) -> None:
    """List the current file slices."""
    state, names = settings.open(table), ("partition", "file_id", "instant", "base_file_bytes", "log_files", "log_bytes")
    if where is None:
        show_rows(settings, [describe_slice(piece) for piece in state.view.latest_slices()], names)
        return
    found = skipped_slices(state, row_condition(where, table_schema(state)))
    show_rows(settings, [{**describe_slice(piece), "skipped": reason} for piece, reason in found], (*names, "skipped"))
    if not settings.as_json:
        counts = Counter(reason for _, reason in found)
        told = f"{counts[PARTITION]} skipped by partition, {counts[STATISTICS]} by statistics"
        click.echo(f"{counts[None]} of {len(found)} slices are read; {told}", err=True)


@click.command()
@click.argument("table")
@click.option("--as-of", metavar="WHEN", help=f"The rows as they were. {AS_OF}")
@click.option("--begin", metavar="WHEN", help=f"Only rows that changed after this moment ('earliest': any). {AS_OF}")
@click.option("--end", metavar="WHEN", help="Only rows that changed up to this moment; as --begin.")
@click.option("--read-optimized", is_flag=True, help="Base files of a merge-on-read table, without its logs.")
@click.option("--where", metavar="CONDITION", help=f"Only rows of which this is true. {WHERE}")
@click.option("--columns", metavar="A,B", help="These columns only.")
@click.option("--meta-columns", is_flag=True, help="With the five _hoodie_ columns in front.")
@click.option("--limit", type=click.IntRange(0, MOST), metavar="N", help=f"At most N rows ({TABLE_LIMIT} when they are shown as a table).")
@click.option("--format", "form", type=click.Choice(FORMATS), help="How rows are written (table; with --json, json).")
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write to a file instead of standard output.")
@with_settings
def read(settings: Settings, table: str, **options: Any) -> None:
    """Read rows: the newest snapshot, an earlier one, or the changes between two moments."""
    form = _form(settings, options["form"], options["output"])
    query = _query(options["as_of"], options["begin"], options["end"], options["read_optimized"])
    state = settings.open(table)
    plan = plan_query(state, query)
    if options["where"] is not None:
        plan = plan_query(state, replace(query, filters=row_condition(options["where"], plan.schema)))
    columns = [name.strip() for name in options["columns"].split(",")] if options["columns"] else None
    try:
        result = projected_schema(plan.schema, columns, options["meta_columns"])
    except SchemaIncompatibleError as error:
        raise click.BadParameter(error.message, param_hint="'--columns'") from error
    limit = TABLE_LIMIT if form == "table" and options["limit"] is None else options["limit"]
    found = iter_arrow(plan, columns=columns, meta_columns=options["meta_columns"])
    with told_of_crossing(state):
        rows = write_rows(limited(found, limit), result, form, options["output"])
    if settings.as_json and options["output"] is not None:
        print_json({"output": options["output"], "format": form, "rows": rows})
    if form == "table" and options["limit"] is None and rows == TABLE_LIMIT:
        click.echo(f"the first {TABLE_LIMIT} rows; --limit shows more", err=True)


def _form(settings: Settings, form: str | None, output: str | None) -> str:
    if settings.as_json and form not in (None, "json") and output is None:
        raise click.UsageError(f"--json prints JSON only, and --format {form} would print something else; write it to a file with --output")
    if output == "":
        raise click.UsageError("--output needs the name of a file")
    chosen = form or ("json" if settings.as_json else "table")
    if chosen == "table" and output is not None:
        raise click.UsageError("--output needs --format csv, json or parquet")
    if chosen == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    return chosen


def _query(as_of: str | None, begin: str | None, end: str | None, read_optimized: bool) -> Query:
    if begin is None and end is None:
        return Query("read_optimized" if read_optimized else "snapshot", as_of)
    if read_optimized:
        raise click.UsageError("--read-optimized does not go with --begin and --end")
    return Query("incremental", as_of, begin, end)
