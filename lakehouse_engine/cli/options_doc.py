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

_SORTING = """
## Sorting a bulk insert

`hoodie.bulkinsert.sort.mode` is followed by `bulk_insert`, `insert_overwrite` and `insert_overwrite_table`, and so by tables and models
that are filled when they are made. Files whose rows are sorted have narrow ranges of values in their footers, so that filters skip more
of them.

| Mode | Spark's tasks get | Rows of a file are in the order of |
|---|---|---|
| `PARTITION_PATH_REPARTITION_AND_SORT` | whole partitions, one after the other | as they come |
| `PARTITION_PATH_REPARTITION` | whole partitions | as they come |
| `GLOBAL_SORT` | ranges of all rows; the query's last stage runs twice | record key (as text) |
| `PARTITION_SORT` | what the query gives them: a file in each of many partitions | record key (as text) |
| `NONE` (Hudi's default) | what the query gives them: a file in each of many partitions | as they come |

With `hoodie.bulkinsert.user.defined.partitioner.sort.columns` rows are sorted by these columns in place of the key, nulls first and NaN
last, and the mode is `GLOBAL_SORT` unless one that sorts is given. Tables without a record key are sorted by such columns only. Arrow
data is written by this process: rows of a partition are together in every mode, and both sorts are the same. Rows of tables with the
BUCKET index stay in their buckets, and only an overwrite sorts them there. Where `hoodie.combine.before.insert` has to deal many keys
into shares (`lakehouse.write.broadcast.max.bytes`), a sort is refused.

A task holds 32 files open. In the modes without a sort by partition, rows of more partitions that alternate make it close files early, so
that there are more of them.
"""

_TUNING = """
## Accepted without effect

Keys with these prefixes tune machinery of Hudi that is not here. They are accepted, so that settings can be shared with Hudi on Spark.

"""

_UNAVAILABLE = """
## Refused by name

These keys of Hudi's ask for what this version has not, and so does every other key under `hoodie.metadata.`, `hoodie.table.cdc.`,
`hoodie.index.hbase.` and `hoodie.hbase.index.` that is not in the list of keys. The value in the table is accepted, as it asks for what is
done; others raise `UnavailableError`, and nothing is changed.

| Key | Accepted | |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    unique = {option.key: option for option in OPTIONS.values()}
    table = ["", "| Key | Default | Meaning |", "|---|---|---|", *(_row(unique[key]) for key in sorted(unique))]
    tuning = [f"- `{prefix}*`" if prefix.endswith(".") else f"- `{prefix}`" for prefix in sorted(TUNING_PREFIXES)]
    unavailable = [f"| `{key}` | `{value}` | {why.split(' in this version')[0]} |" for key, (value, why) in KEYS.items()]
    return _HEAD + "\n".join(table) + "\n" + _SORTING + _TUNING + "\n".join(tuning) + "\n" + _UNAVAILABLE + "\n".join(unavailable) + "\n"


def _row(option: Option[object]) -> str:
    aliases = f" Also: {', '.join(f'`{name}`' for name in option.aliases)}." if option.aliases else ""
    return f"| `{option.key}` | {_default(option.default)} | {option.doc.replace('|', chr(92) + '|')}{aliases} |"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value not in ("", None, ()) else ""


if __name__ == "__main__":
    click.echo(render(), nl=False)
