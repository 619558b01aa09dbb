"""Maintenance commands."""

from __future__ import annotations

from typing import Any

import click

from lakehouse_engine.cli.shared import an_instant, dry_run_option, options_option, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.cli.terminal.results import show_result
from lakehouse_engine.cli.work import open_services
from lakehouse_engine.services.cluster.request import CLUSTERING_OPS
from lakehouse_engine.table_services import COMPACTION_OPS

_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("table")
@click.option("--op", type=click.Choice(COMPACTION_OPS), default="schedule_and_run", show_default=True, help="What to do.")
@click.option("--instant", metavar="INSTANT", callback=an_instant, help="The scheduled compaction to run (the oldest); with --op run.")
@click.option("--log", is_flag=True, help="Merge the blocks of logs with each other, and leave base files.")
@options_option
@dry_run_option
@with_settings
def compact(settings: Settings, table: str, op: str, instant: str | None, log: bool, **arguments: Any) -> None:
    """Merge the logs of a merge-on-read table into base files."""
    services = open_services(settings, table)
    with working(f"compacting {table}"):
        result = (services.log_compact if log else services.compact)(op, instant=instant, **arguments)
    show_result(settings, result)


@click.command()
@click.argument("table")
@click.option("--op", type=click.Choice(CLUSTERING_OPS), default="schedule_and_run", show_default=True, help="What to do.")
@click.option("--order-by", metavar="COLUMN[,COLUMN...]", help="Columns to sort rows by.")
@click.option("--layout", metavar="LAYOUT", help="linear, z_order or hilbert.")
@click.option("--partition", "partitions", multiple=True, metavar="PATH", help="A partition to look at (all); may be repeated.")
@click.option("--instant", metavar="INSTANT", callback=an_instant, help="The scheduled clustering to run (the oldest); with --op run.")
@options_option
@dry_run_option
@with_settings
def cluster(settings: Settings, table: str, op: str, order_by: str | None, partitions: tuple[str, ...], **arguments: Any) -> None:
    """Write rows of many files again together, sorted and in files of a good size."""
    services = open_services(settings, table)
    columns = None if order_by is None else [name.strip() for name in order_by.split(",") if name.strip()]
    with working(f"clustering {table}"):
        result = services.cluster(op, order_by=columns, partitions=list(partitions) or None, **arguments)
    show_result(settings, result)


@click.command()
@click.argument("table")
@click.option("--retain-commits", type=_COUNT, metavar="N", help="Keep the files of the last N commits.")
@options_option
@dry_run_option
@with_settings
def clean(settings: Settings, table: str, **arguments: Any) -> None:
    """Delete files that no query within the retention reads. Savepoints keep their files."""
    services = open_services(settings, table)
    with working(f"cleaning {table}"):
        result = services.clean(**arguments)
    show_result(settings, result)


@click.command()
@click.argument("table")
@click.option("--min-commits", type=_COUNT, metavar="N", help="Leave N commits on the active timeline.")
@click.option("--max-commits", type=_COUNT, metavar="N", help="Only where there are more than N (as many as are left).")
@options_option
@dry_run_option
@with_settings
def archive(settings: Settings, table: str, **arguments: Any) -> None:
    """Move old instants to the archived timeline."""
    services = open_services(settings, table)
    with working(f"archiving {table}"):
        result = services.archive(**arguments)
    show_result(settings, result)
