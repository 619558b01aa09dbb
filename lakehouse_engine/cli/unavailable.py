"""Commands of Hudi's for what this version has not: they take anything, say so by name, and end as refused."""

from __future__ import annotations

from typing import NoReturn

import click

from lakehouse_engine.errors import UnavailableError
from lakehouse_engine.options.unavailable import CLUSTERING


def _command(name: str, why: str) -> click.Command:
    @click.command(name, context_settings={"ignore_unknown_options": True}, help=f"{why[0].upper()}{why[1:]}.")
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def refused(arguments: tuple[str, ...]) -> NoReturn:
        raise UnavailableError(f"{name}: {why}")

    return refused


cluster = _command("cluster", CLUSTERING)
