"""Names: the one way a mistyped one is answered, with the nearest valid one; and what the adapter's own are like."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

CATALOG = "spark_catalog"
"""Spark's name of the one catalog, in which the warehouse's schemas are."""

_OWN_SAVEPOINTS = "dbt_"
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def node_label(node: Any) -> str:
    """What errors call a model, seed or snapshot of the project."""
    return f"{node.resource_type} '{node.name}' ({node.original_file_path})"


def source_label(source: Any) -> str:
    """What errors call a source."""
    return f"source '{source.source_name}.{source.name}' ({source.original_file_path})"


def own_savepoint(invocation_id: str) -> str:
    """How the savepoints of a protected run are called."""
    return f"{_OWN_SAVEPOINTS}{invocation_id}"


def is_own_savepoint(name: str | None) -> bool:
    """Whether a savepoint was taken by a protected run: a name of somebody's own may begin as those do."""
    return name is not None and name.startswith(_OWN_SAVEPOINTS) and bool(_RUN_ID.fullmatch(name.removeprefix(_OWN_SAVEPOINTS)))


def nearest(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The valid name closest to `name`, if any is close. `cutoff`: how close, from 0 (anything) to 1 (equal)."""
    found = difflib.get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """`"; did you mean 'x'?"`, or nothing."""
    near = nearest(name, valid)
    return f"; did you mean '{near}'?" if near else ""


def same_names(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the names of columns are the same in the same order, without regard to case."""
    return [name.lower() for name in left] == [name.lower() for name in right]


def missing_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Those of `names` that are not among `known`, whatever their case."""
    there = {name.lower() for name in known}
    return [name for name in names if name.lower() not in there]
