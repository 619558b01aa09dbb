"""Names: suggestions for mistyped ones, and the forms of the adapter's own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

CATALOG = "spark_catalog"
"""Spark's name of its one catalog, which holds the warehouse's schemas."""

_OWN_SAVEPOINTS = "dbt_"
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def node_label(node: Any) -> str:
    """Name of a model, seed or snapshot in errors."""
    return f"{node.resource_type} '{node.name}' ({node.original_file_path})"


def source_label(source: Any) -> str:
    """Name of a source in errors."""
    return f"source '{source.source_name}.{source.name}' ({source.original_file_path})"


def own_savepoint(invocation_id: str) -> str:
    """Prefix of the names of a protected run's savepoints."""
    return f"{_OWN_SAVEPOINTS}{invocation_id}"


def is_own_savepoint(name: str | None) -> bool:
    """True if a protected run took the savepoint. A user's own name may start the same way."""
    return name is not None and name.startswith(_OWN_SAVEPOINTS) and bool(_RUN_ID.fullmatch(name.removeprefix(_OWN_SAVEPOINTS)))


def nearest(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The valid name closest to `name`, if one is close. `cutoff`: from 0 (anything) to 1 (equal)."""
    found = difflib.get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """`"; did you mean 'x'?"`, or an empty text."""
    near = nearest(name, valid)
    return f"; did you mean '{near}'?" if near else ""


def same_names(left: Sequence[str], right: Sequence[str]) -> bool:
    """True if the column names are equal and in the same order, ignoring case."""
    return [name.lower() for name in left] == [name.lower() for name in right]


def missing_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The `names` that are not in `known`, ignoring case."""
    there = {name.lower() for name in known}
    return [name for name in names if name.lower() not in there]
