"""Commands about the metadata table that Hudi keeps beside a table."""

from __future__ import annotations

from dataclasses import asdict

import click

from lakehouse_engine.cli.shared import with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.errors import FAILED
from lakehouse_engine.cli.terminal.output import print_json, print_rows
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.verify.metadata_table import MetadataReport, check_metadata_table


@click.group()
def metadata() -> None:
    """Look into the metadata table of a table: the index of its files, statistics and keys that Hudi keeps in .hoodie/metadata."""


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


def _print(report: MetadataReport) -> None:
    compared = f"{report.files} files, {report.statistics} column statistics, {report.filters} Bloom filters, {report.keys} keys"
    verdict = "ok" if report.ok else f"{len(report.findings)} finding{'' if len(report.findings) == 1 else 's'}"
    click.echo(f"{report.table}: {verdict} ({compared})")
    for skipped in report.skipped:
        click.echo(f"not checked: {skipped}")
    if report.findings:
        rows = [(str(one.kind), one.partition, one.path, one.message) for one in report.findings]
        print_rows(("finding", "partition", "path", "message"), rows)
