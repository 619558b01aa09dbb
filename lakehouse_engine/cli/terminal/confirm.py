"""Ask before something is taken back."""

from __future__ import annotations

import sys

import click

from lakehouse_engine.cli.terminal.errors import REFUSED


class NotConfirmed(click.ClickException):
    """The user did not say yes; nothing was changed."""

    exit_code = REFUSED


def confirm(question: str, *, yes: bool) -> None:
    """Go on if the user says so: with --yes, or at the terminal. Raises `NotConfirmed` otherwise."""
    if yes:
        return
    if not interactive():
        raise NotConfirmed(f"{question} Nothing was changed: say --yes, or --dry-run to see what it would do")
    if not click.confirm(question, err=True):
        raise NotConfirmed("nothing was changed")


def interactive() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()
