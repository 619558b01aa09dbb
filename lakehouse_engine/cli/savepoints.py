"""Commands that keep states of a table, and bring them back."""

from __future__ import annotations

from typing import Any

import click

from lakehouse_engine.cli.shared import (
    accept_future_option,
    an_instant,
    dry_run_option,
    options_option,
    show_facts,
    show_rows,
    with_settings,
    yes_option,
)
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.confirm import confirm
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.cli.terminal.results import savepoint_row, show_result
from lakehouse_engine.cli.work import open_services
from lakehouse_engine.model.services import RestoreResult

_COLUMNS = ("name", "instant", "user", "created_at", "comment", "files", "bytes")


@click.group()
def savepoint() -> None:
    """Make, list and delete savepoints: commits whose files are kept until the savepoint is deleted."""


@savepoint.command()
@click.argument("table")
@click.option("--name", metavar="NAME", help="A name to go back by.")
@click.option("--instant", metavar="INSTANT", callback=an_instant, help="The commit to keep (the newest).")
@click.option("--comment", default="", metavar="TEXT", help="Why.")
@click.option("--user", metavar="NAME", help="Who (you).")
@options_option
@dry_run_option
@with_settings
def create(settings: Settings, table: str, options: dict[str, str], **arguments: Any) -> None:
    """Keep the table as of a commit."""
    services = open_services(settings, table, options)
    with working("creating a savepoint"):
        made = services.savepoint(**arguments)
    show_facts(settings, {**savepoint_row(made), "dry_run": arguments["dry_run"]})


@savepoint.command(name="list")
@click.argument("table")
@with_settings
def list_savepoints(settings: Settings, table: str) -> None:
    """List the savepoints, oldest first."""
    show_rows(settings, [savepoint_row(one) for one in open_services(settings, table).savepoints()], _COLUMNS)


@savepoint.command()
@click.argument("table")
@click.argument("savepoint")
@options_option
@dry_run_option
@yes_option
@with_settings
def delete(settings: Settings, table: str, savepoint: str, options: dict[str, str], dry_run: bool, yes: bool) -> None:
    """Delete a savepoint by its name or instant; the next clean may delete the files that only it kept."""
    services = open_services(settings, table, options)
    found = services.delete_savepoint(savepoint, dry_run=True)
    if not dry_run:
        confirm(f"Delete the savepoint {found.name or found.instant} of {table}?", yes=yes)
        # Given as an instant, so that "latest" is the savepoint that was confirmed.
        found = services.delete_savepoint(found.instant)
    show_facts(settings, {**savepoint_row(found), "dry_run": dry_run})


@click.command()
@click.argument("table")
@click.option("--savepoint", metavar="NAME", help="The name or instant of a savepoint; 'latest' is the newest one.")
@click.option("--to", metavar="INSTANT", callback=an_instant, help="A commit, without a savepoint on it.")
@click.option("--cascade", is_flag=True, help="Delete later savepoints, too.")
@accept_future_option
@options_option
@dry_run_option
@yes_option
@with_settings
def restore(
    settings: Settings,
    table: str,
    savepoint: str | None,
    to: str | None,
    cascade: bool,
    accept_future: bool,
    options: dict[str, str],
    dry_run: bool,
    yes: bool,
) -> None:
    """Bring the table back to a savepoint or commit. Everything written since is gone for every reader."""
    if (savepoint is None) == (to is None):
        raise click.UsageError("a restore goes to a savepoint or to a commit: give one of --savepoint and --to")
    services = open_services(settings, table, options)
    planned = services.restore(savepoint, to=to, cascade=cascade, dry_run=True)
    if not dry_run:
        confirm(_question(table, planned), yes=yes)
        with working(f"restoring to {planned.restored_to}"):
            # Given as an instant, so that "latest" is the savepoint that was confirmed.
            target = planned.restored_to
            planned = services.restore(
                target if savepoint else None, to=target if to else None, cascade=cascade, accept_future=accept_future
            )
    show_result(settings, planned)


def _question(table: str, planned: RestoreResult) -> str:
    also = f", delete {len(planned.savepoints_deleted)} later savepoints" if planned.savepoints_deleted else ""
    lost = f"take back {len(planned.rolled_back)} instants with {planned.rows_taken_back} rows{also}"
    return f"Restore {table} to {planned.restored_to}, {lost} and delete {len(planned.files_deleted)} files?"


@click.command()
@click.argument("table")
@click.option("--instant", metavar="INSTANT", callback=an_instant, help="The commit that you mean; it must be the newest.")
@options_option
@dry_run_option
@yes_option
@with_settings
def rollback(settings: Settings, table: str, instant: str | None, options: dict[str, str], dry_run: bool, yes: bool) -> None:
    """Take the newest commit back."""
    services = open_services(settings, table, options)
    planned = services.rollback(instant, dry_run=True)
    if not dry_run:
        confirm(f"Take back the {planned.action} {planned.rolled_back} of {table} with {planned.rows_taken_back} rows?", yes=yes)
        with working(f"rolling back {planned.rolled_back}"):
            # Given as an instant, so that a commit made meanwhile is not taken back.
            planned = services.rollback(planned.rolled_back)
    show_result(settings, planned)
