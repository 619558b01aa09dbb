"""Parts of every command: its settings, and printing of rows or facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import click

from lakehouse_engine.cli.target import Settings
from lakehouse_engine.cli.terminal.output import human_bytes, print_facts, print_json, print_rows

Command = Callable[..., Any]


def with_settings(command: Command) -> Command:
    """Pass the command its `Settings`; --warehouse and --json are also accepted after its name."""

    @click.option("--warehouse", metavar="DIR", help="The warehouse.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
    @wraps(command)
    def run(warehouse: str | None, as_json: bool, **arguments: Any) -> Any:
        settings: Settings = click.get_current_context().obj
        merged = Settings(warehouse or settings.warehouse, settings.as_json or as_json)
        return command(merged, **arguments)

    return run


MOST = 2**63 - 1
"""Greatest count that an option accepts."""
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
accept_future_option = click.option(
    "--accept-future", is_flag=True, help="Go on from instants that a writer with a wrong clock put into the future."
)
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def key_values(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Pairs that an option was given. Raises `click.BadParameter` for one without a key or a sign."""
    pairs = [one.partition("=") for one in given]
    wrong = next((one for one, (key, separator, _) in zip(given, pairs, strict=True) if not separator or not key), None)
    if wrong is not None:
        raise click.BadParameter(f"{wrong!r} is not KEY=VALUE")
    return {key: value for key, _, value in pairs}


def an_instant(context: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
    """An instant that an option was given. Raises `click.BadParameter` for a text that can be none."""
    if given is not None and not (given.isascii() and given.isdigit()):
        raise click.BadParameter(f"{given!r} is no instant (yyyyMMddHHmmssSSS)")
    return given


options_option = click.option(
    "--option", "options", multiple=True, callback=key_values, metavar="KEY=VALUE", help="A hoodie.* option; may be given several times."
)


def show_rows(settings: Settings, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Rows as JSON objects, or the named members of each as a table, with a mark for empty values."""
    if settings.as_json:
        print_json(rows)
    else:
        print_rows(names, [["" if row[name] is None else row[name] for name in names] for row in rows])


def show_facts(settings: Settings, facts: Mapping[str, Any]) -> None:
    """Facts as one JSON object, or one per line; members whose name ends in `bytes` in readable units."""
    if settings.as_json:
        print_json(facts)
    else:
        print_facts({name: _fact(name, value) for name, value in facts.items()})


def _fact(name: str, value: object) -> object:
    if value is None:
        return "none"
    return human_bytes(value) if isinstance(value, int) and _is_size(name) else value


def _is_size(name: str) -> bool:
    return name.split("_")[0] == "bytes"
