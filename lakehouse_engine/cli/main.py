"""`lakehouse`: the command line. It works on tables without Spark and starts no JVM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.errors import FAILED, exit_code_of, show
from lakehouse_engine.errors import LakehouseError


@dataclass(frozen=True, slots=True)
class _Home:
    """Module of a command, and its one-line description."""

    module: str
    attribute: str
    help: str


COMMANDS = {
    "tables": _Home("warehouse", "tables", "List the tables and stored views of the warehouse."),
    "info": _Home("commands", "info", "Say what a table is: type, keys, newest commit, size."),
    "schema": _Home("commands", "schema", "List the columns."),
    "timeline": _Home("commands", "timeline", "List what happened to the table, newest first."),
    "history": _Home("commands", "timeline", "The same as timeline."),
    "files": _Home("commands", "files", "List the file slices that make the table now."),
    "read": _Home("commands", "read", "Read rows: the newest snapshot, an earlier one, or what changed."),
    "savepoint": _Home("savepoints", "savepoint", "Make, list and delete savepoints."),
    "restore": _Home("savepoints", "restore", "Bring the table back to a savepoint or commit."),
    "rollback": _Home("savepoints", "rollback", "Take the newest commit back."),
    "compact": _Home("services", "compact", "Merge the logs of a merge-on-read table into base files."),
    "cluster": _Home("services", "cluster", "Write rows of many files again together, sorted."),
    "clean": _Home("services", "clean", "Delete files that no query within the retention reads."),
    "archive": _Home("services", "archive", "Move old instants to the archived timeline."),
    "writers": _Home("health", "writers", "Say who is writing a table, and what waits for what."),
    "verify": _Home("health", "verify", "Check that the table is whole."),
    "metadata": _Home("metadata", "metadata", "Check the metadata table that Hudi keeps beside a table."),
    "index": _Home("indexes", "index", "Create, drop and list indexes of the metadata table."),
    "repair": _Home("health", "repair", "Take back dead writes, finish what was cut off, see to damaged metadata."),
    "abort-uploads": _Home("warehouse", "abort_uploads", "Remove what killed writers had sent of files to S3."),
    "upgrade": _Home("versions", "upgrade", "Bring a table to a later table version."),
    "downgrade": _Home("versions", "downgrade", "Bring a table to an earlier table version."),
}
"""Commands are imported when called, so that each starts as fast as it can alone."""


class LakehouseGroup(click.Group):
    """Finds commands in their modules, and turns every expected error into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        command: click.Command = getattr(import_module(f"lakehouse_engine.cli.{home.module}"), home.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, home.help) for name, home in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *others: Any, **extra: Any) -> Any:
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(arguments, prog_name or "lakehouse", **{**extra, "standalone_mode": False})
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(FAILED)
        except (LakehouseError, click.ClickException, OSError) as error:
            show(error, as_json="--json" in arguments)
            sys.exit(exit_code_of(error))
        sys.exit(code or 0)


@click.group(cls=LakehouseGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--warehouse", envvar="LAKEHOUSE_WAREHOUSE", default="./lakehouse", show_default=True, metavar="DIR", help="The warehouse.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
@click.pass_context
def cli(context: click.Context, warehouse: str, as_json: bool) -> None:
    """Inspect and maintain Apache Hudi tables. TABLE is schema.table of the warehouse, or a table's directory.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (nothing was changed).
    """
    context.obj = Settings(warehouse, as_json)


def main() -> None:
    """The console script."""
    cli()


if __name__ == "__main__":
    main()
