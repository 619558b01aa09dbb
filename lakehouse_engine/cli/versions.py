"""Commands that change the version of a table."""

from __future__ import annotations

from typing import Any

import click

from lakehouse_engine.cli.shared import dry_run_option, options_option, with_settings
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.progress import working
from lakehouse_engine.cli.terminal.results import show_result
from lakehouse_engine.cli.work import open_services
from lakehouse_engine.table_services import upgrade_table


@click.command()
@click.argument("table")
@click.option("--to", type=click.Choice(["6", "8", "9"]), default="9", show_default=True, help="The table version.")
@options_option
@dry_run_option
@with_settings
def upgrade(settings: Settings, table: str, to: str, **arguments: Any) -> None:
    """Bring a table to a later version, also one of versions 2 to 5 or 7. What it holds, now and as of earlier moments, stays the same."""
    # Not by opening the table: versions before 6 cannot be opened.
    path = settings.directory(table)
    with working(f"upgrading {table}"):
        result = upgrade_table(path, to=int(to), **arguments)
    show_result(settings, result)


@click.command()
@click.argument("table")
@click.option("--to", type=click.Choice(["8", "6"]), default="6", show_default=True, help="The table version.")
@options_option
@dry_run_option
@with_settings
def downgrade(settings: Settings, table: str, to: str, **arguments: Any) -> None:
    """Bring a table to an earlier version. What that cannot hold is refused, with the reason."""
    services = open_services(settings, table)
    with working(f"downgrading {table}"):
        result = services.downgrade(int(to), **arguments)
    show_result(settings, result)
