"""Commands that check a table and repair it."""

from __future__ import annotations

from dataclasses import asdict, fields

import click

from lakehouse_engine.cli.shared import accept_future_option, dry_run_option, show_rows, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.errors import FAILED
from lakehouse_engine.cli.terminal.output import human_bytes, print_json, print_rows
from lakehouse_engine.cli.terminal.progress import counting, working
from lakehouse_engine.commit.concurrency.writers import find_writers
from lakehouse_engine.model.writers import Writer
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.repair import RepairReport
from lakehouse_engine.repair import repair as repair_table
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.verify import VerifyReport
from lakehouse_engine.verify import verify as verify_table


@click.command()
@click.argument("table")
@click.option("--quick", is_flag=True, help="Names and sizes only: no data file is read.")
@with_settings
def verify(settings: Settings, table: str, quick: bool) -> None:
    """Check that the table is whole: metadata, files, sizes, checksums, unique record keys. Exit code 1 if not."""
    with counting(f"verifying {table}", silent=settings.as_json) as progress:
        report = verify_table(settings.open(table), quick=quick, progress=progress)
    if settings.as_json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        _print_report(report, quick=quick)
    if not report.ok:
        click.get_current_context().exit(FAILED)


def _print_report(report: VerifyReport, *, quick: bool) -> None:
    rows = "no data read" if quick else f"{report.rows} rows"
    looked = f"{report.instants} instants, {report.retained_files} files, {human_bytes(report.bytes)}, {rows}"
    click.echo(f"{report.table}: {'ok' if report.ok else _count(len(report.findings))} ({looked})")
    for skipped in report.skipped:
        click.echo(f"not checked: {skipped}")
    if report.findings:
        print_rows(("finding", "path", "message"), [(str(one.kind), one.path, one.message) for one in report.findings])
        click.echo(f"way out: {report.way_out}")


def _count(findings: int) -> str:
    return f"{findings} finding{'' if findings == 1 else 's'}"


@click.command()
@click.argument("table")
@with_settings
def writers(settings: Settings, table: str) -> None:
    """List the writers of the table, since when and whether they are alive, the holder of its lock, and who waits for it."""
    rows = [asdict(one) for one in find_writers(settings.open(table))]
    if rows or settings.as_json:
        show_rows(settings, rows, [field.name for field in fields(Writer)])
    else:
        click.echo("nobody")


@click.command()
@click.argument("table")
@accept_future_option
@click.option(
    "--trust-files", is_flag=True, help="Make the damaged record of a completed write anew of the files that carry its instant."
)
@click.option(
    "--accept-lost-archive", is_flag=True, help="Let a write_id that is not found count as new, though a part of the archive is lost."
)
@dry_run_option
@with_settings
def repair(settings: Settings, table: str, **arguments: bool) -> None:
    """Take back dead writes and finish interrupted work, as the next write would; --dry-run only reports.

    Exit code 1 if something remains that a person has to act on.
    """
    # Does not open the table: unreadable properties may be what has to be repaired.
    storage = storage_for(settings.directory(table, damaged=True))
    with working(f"repairing {table}"):
        report = repair_table(storage, lock_timeout_ms=LOCK_TIMEOUT_MS.default, **arguments)
    if settings.as_json:
        print_json({"ok": report.ok, **asdict(report)})
    else:
        _print_repair(report)
    if not report.ok:
        click.get_current_context().exit(FAILED)


def _print_repair(report: RepairReport) -> None:
    done = "would be repaired" if report.dry_run else "repaired"
    rows = [(done, *_row) for _row in ((str(one.kind), one.what, one.message) for one in report.repaired)]
    rows += [("left", str(one.kind), one.what, one.message) for one in report.left]
    what = f"{len(report.repaired)} {done}, {len(report.left)} left" if rows else "in order, by names and sizes; `verify` reads the data"
    click.echo(f"{report.table}: {what}")
    if rows:
        print_rows(("", "disorder", "what", "message"), rows)
