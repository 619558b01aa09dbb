"""Results as tables for people, as JSON for programs."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNLIMITED = 100_000
"""Width when the output is no terminal: text in a pipe is neither wrapped nor cut."""


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))


def print_rows(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with a heading; numbers are right-aligned."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, name in enumerate(names):
        numeric = any(isinstance(row[position], int | float | Decimal) and not isinstance(row[position], bool) for row in rows)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(printable(cell(value))) for value in row])
    _console().print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Names and values, one per line."""
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {printable(cell(value))}")


def _console() -> Console:
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def cell(value: object) -> str:
    """One value in readable form."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value) or "none"
    if isinstance(value, list | tuple | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value))


def printable(text: str) -> str:
    """Control characters as escapes: a table's content must not control the terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def plain(value: Any) -> Any:
    """A value as JSON: moments as ISO 8601, decimals as text, bytes as base64, NaN and infinities as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    return value


def human_bytes(count: int) -> str:
    """`12.3 MiB`."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
