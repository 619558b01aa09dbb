"""Commands about the metadata table that Hudi keeps beside a table."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse_engine.cli.shared import with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.errors import FAILED
from lakehouse_engine.cli.terminal.output import print_json, print_rows
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.cli.terminal.results import show_result
from lakehouse_engine.cli.work import open_services
from lakehouse_engine.verify.metadata_table import MetadataReport, check_metadata_table


@click.group()
def metadata() -> None:
    """Look after the metadata table of a table: the index of its files, statistics and keys that Hudi keeps in .hoodie/metadata."""


def _split(context: click.Context, parameter: click.Parameter, given: str | None) -> list[str] | None:
    names = None if given is None else [name.strip() for name in given.split(",") if name.strip()]
    if names == []:
        raise click.BadParameter("it names no partition; leave the option out for all of them")
    return names


_NAMES = "Which ones, separated by commas: column_stats, bloom_filters, record_index, partition_stats (default: all there are)."
_partitions_option = click.option("--partitions", callback=_split, metavar="NAMES", help=_NAMES)


@metadata.command()
@click.argument("table")
@click.option("--quick", is_flag=True, help="Names, sizes and footers only: no rows are read.")
@with_settings
def check(settings: Settings, table: str, quick: bool) -> None:
    """Compare the metadata table with files, footers and rows. Exit code 1 where it says something else."""
    with working(f"checking the metadata table of {table}"):
        report = check_metadata_table(settings.open(table), quick=quick)
    if settings.as_json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        _print(report)
    if not report.ok:
        click.get_current_context().exit(FAILED)


@metadata.command()
@click.argument("table")
@_partitions_option
@with_settings
def rebuild(settings: Settings, table: str, partitions: list[str] | None) -> None:
    """Build the metadata table from the data files; replaces what is there. With --partitions those only: the others stay."""
    services = open_services(settings, table)
    with working(f"building the metadata table of {table}"):
        result = services.rebuild_metadata(partitions)
    show_result(settings, result)


@metadata.command()
@click.argument("table")
@_partitions_option
@with_settings
def drop(settings: Settings, table: str, partitions: list[str] | None) -> None:
    """Drop the metadata table, or partitions of it. No row is lost: readers find files by listing directories then."""
    services = open_services(settings, table)
    with working(f"dropping the metadata table of {table}"):
        result = services.drop_metadata(partitions)
    show_result(settings, result)


def _print(report: MetadataReport) -> None:
    compared = f"{report.files} files, {report.statistics} column statistics, {report.filters} Bloom filters, {report.keys} keys"
    verdict = "ok" if report.ok else f"{len(report.findings)} finding{'' if len(report.findings) == 1 else 's'}"
    click.echo(f"{report.table}: {verdict} ({compared})")
    for skipped in report.skipped:
        click.echo(f"not checked: {skipped}")
    if report.findings:
        rows = [(str(one.kind), one.partition, one.path, one.message) for one in report.findings]
        print_rows(("finding", "partition", "path", "message"), rows)
