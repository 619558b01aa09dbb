"""Names: the one way a mistyped one is answered, with the nearest valid one; and what the adapter's own are like."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

CATALOG = "spark_catalog"
"""Spark's name of the one catalog, in which the warehouse's schemas are."""

OWN_SAVEPOINTS = "dbt_"
"""How the savepoints of a protected run begin; the run's id follows."""


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name closest to `name`, if any is close."""
    found = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.6)
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
