"""Generates `docs/options.md` from the options: `python -m lakehouse_engine.cli.options_doc > docs/options.md`."""

from __future__ import annotations

import click

from lakehouse_engine.options import OPTIONS, TUNING_PREFIXES, Option
from lakehouse_engine.options.unavailable import KEYS

_HEAD = """# Options

<!-- Made by `make docs` from lakehouse_engine/options. -->

Every key that the engine acts on, with Hudi's name where Hudi has the option. Keys are given, from weakest to strongest, as properties
of a table when it is created, as `options` of `Lakehouse` or `HoodieTable.open` (in dbt: `hoodie` of the profile), and as `options`
of one write (in dbt: `hoodie` of a model). An unknown key is refused with the nearest known one, and a value that does not parse
wherever it is given. A table keeps no options with which its next write would be refused.
"""

_TUNING = """
## Accepted without effect

Keys with these prefixes tune machinery of Hudi that is not here. They are accepted, so that settings can be shared with Hudi on Spark.

"""

_UNAVAILABLE = """
## Refused by name

These keys of Hudi's ask for what this version has not, and so does every other key under `hoodie.metadata.` and `hoodie.table.cdc.`.
The value in the table is accepted, as it asks for what is done; others raise `UnavailableError`, and nothing is changed.

| Key | Accepted | |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    unique = {option.key: option for option in OPTIONS.values()}
    table = ["", "| Key | Default | Meaning |", "|---|---|---|", *(_row(unique[key]) for key in sorted(unique))]
    tuning = [f"- `{prefix}*`" if prefix.endswith(".") else f"- `{prefix}`" for prefix in sorted(TUNING_PREFIXES)]
    unavailable = [f"| `{key}` | `{value}` | {why.split(' in this version')[0]} |" for key, (value, why) in KEYS.items()]
    return _HEAD + "\n".join(table) + "\n" + _TUNING + "\n".join(tuning) + "\n" + _UNAVAILABLE + "\n".join(unavailable) + "\n"


def _row(option: Option[object]) -> str:
    aliases = f" Also: {', '.join(f'`{name}`' for name in option.aliases)}." if option.aliases else ""
    return f"| `{option.key}` | {_default(option.default)} | {option.doc.replace('|', chr(92) + '|')}{aliases} |"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value not in ("", None, ()) else ""


if __name__ == "__main__":
    click.echo(render(), nl=False)
