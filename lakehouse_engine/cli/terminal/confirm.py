"""Asks before something is taken back."""

from __future__ import annotations

import sys

import click

from lakehouse_engine.cli.terminal.errors import REFUSED


class NotConfirmed(click.ClickException):
    """The user did not agree; nothing was changed."""

    exit_code = REFUSED


def confirm(question: str, *, yes: bool) -> None:
    """Continue if the user agrees, with --yes or at the terminal. Raises `NotConfirmed` otherwise."""
    if yes:
        return
    if not interactive():
        raise NotConfirmed(f"{question} Nothing was changed: say --yes, or --dry-run to see what it would do")
    if not click.confirm(question, err=True):
        raise NotConfirmed("nothing was changed")


def interactive() -> bool:
    """True if there is a terminal to ask at."""
    return sys.stdin.isatty() and sys.stderr.isatty()
