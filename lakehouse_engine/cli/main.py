"""`lakehouse`: the command line. It reads tables without Spark and starts no JVM."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from lakehouse_engine.cli import commands
from lakehouse_engine.cli.errors import FAILED, exit_code_of, show
from lakehouse_engine.cli.target import Settings
from lakehouse_engine.errors import LakehouseError


class LakehouseGroup(click.Group):
    """Ends every expected error in one line and its exit code."""

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
    """Look into Apache Hudi tables. TABLE is schema.table of the warehouse, or a table's directory.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (nothing was changed).
    """
    context.obj = Settings(warehouse, as_json)


_COMMANDS: tuple[click.Command, ...] = (
    commands.tables,
    commands.info,
    commands.schema,
    commands.timeline,
    commands.files,
    commands.read,
    commands.verify,
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """The console script."""
    cli()


if __name__ == "__main__":
    main()
