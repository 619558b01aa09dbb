"""Queries for `unique` and `primary_key`: values that would be stored more than once after a write.

Rows with a null in one of the columns do not count, as in SQL. A write that keeps one row per record, such as a merge, is judged by
records: `identity` are their columns. It is empty if every row counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.names import missing_names
from dbt.adapters.lakehouse.writing.checks.constraints import Unique, example_of


def is_implied(unique: Unique, identity: Sequence[str]) -> bool:
    """True if two records cannot have equal values, because their identity is among the columns."""
    return bool(identity) and not missing_names(identity, unique.columns)


def collisions(unique: Unique, rows: str, kept: str | None, identity: Sequence[str]) -> str:
    """One row: how many incoming values would be stored twice, and one of them as text.

    `rows` is a query of what comes, `kept` one of the stored rows that stay.
    """
    names = ", ".join(map(quoted, unique.columns))
    wanted = ", ".join(map(quoted, (*unique.columns, *missing_names(identity, unique.columns))))
    present = " and ".join(f"{quoted(name)} is not null" for name in unique.columns)
    came = f"select {wanted}, true as `__came` from ({rows}) where {present}"
    if kept is not None:
        same = " and ".join(f"__kept.{quoted(name)} = __rows.{quoted(name)}" for name in unique.columns)
        came += f" union all select {wanted}, false from ({kept}) as __kept where exists (select 1 from ({rows}) as __rows where {same})"
    times = f"count(distinct struct({', '.join(map(quoted, identity))}))" if identity else "count(*)"
    twice = f"select {names} from ({came}) group by {names} having {times} > 1 and bool_or(`__came`)"
    return f"select count(*), min({example_of('struct(*)')}) from ({twice})"


def without(stored: str, source: str, columns: Sequence[str], ordering: Sequence[str] = ()) -> str:
    """Rows of `stored` except those with the values of a row of `source`, which with `ordering` must be at least as new."""
    same = [f"__stored.{quoted(name)} <=> __source.{quoted(name)}" for name in columns]
    if ordering:
        same.append(f"{_age(ordering, '__source.')} >= {_age(ordering, '__stored.')}")
    return f"select __stored.* from ({stored}) as __stored left anti join ({source}) as __source on {' and '.join(same)}"


def newest(source: str, columns: Sequence[str], identity: Sequence[str], ordering: Sequence[str]) -> str:
    """Rows of `source` that are the newest of their record. All of equal rows are kept: the write takes the last one, but SQL has no order
    to find it.
    """
    age, record = _age(ordering), ", ".join(map(quoted, identity))
    marked = f"select *, {age} as `__dbt_age`, max({age}) over (partition by {record}) as `__dbt_newest` from ({source})"
    return f"select {', '.join(map(quoted, columns))} from ({marked}) where `__dbt_age` <=> `__dbt_newest`"


def not_older(source: str, stored: str, identity: Sequence[str], ordering: Sequence[str]) -> str:
    """Rows of `source` except those whose record is stored as a newer one: a merge does not write them."""
    same = [f"__stored.{quoted(name)} <=> __source.{quoted(name)}" for name in identity]
    older = f"{_age(ordering, '__stored.')} > {_age(ordering, '__source.')}"
    return f"select __source.* from ({source}) as __source left anti join ({stored}) as __stored on {' and '.join([*same, older])}"


def updated(source: str, columns: Sequence[str], stored: str, identity: Sequence[str], updates: Collection[str]) -> str:
    """Rows of `source` as a merge that updates only some columns stores them: other columns keep their stored values."""
    changed = {name.lower() for name in (*updates, *identity)}
    same = " and ".join(f"__stored.{quoted(name)} <=> __source.{quoted(name)}" for name in identity)
    chosen = [
        f"__source.{quoted(name)}"
        if name.lower() in changed
        else f"if(__stored.`_hoodie_commit_seqno` is null, __source.{quoted(name)}, __stored.{quoted(name)}) as {quoted(name)}"
        for name in columns
    ]
    return f"select {', '.join(chosen)} from ({source}) as __source left join ({stored}) as __stored on {same}"


def _age(ordering: Sequence[str], side: str = "") -> str:
    """Expression that compares like the ordering values: within a struct null is the least value."""
    return f"struct({', '.join(side + _path(name) for name in ordering)})"


def _path(name: str) -> str:
    return ".".join(map(quoted, name.split(".")))
