"""SQL of a merge with clauses: which rows of the model it writes, and which stored rows it changes because the model lacks them. Pure text.

`source` and `target` are views of the model's rows and of the stored ones; `identity` are the columns that identify a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.config.clauses import MergeClauses


def rows_to_write(source: str, target: str, columns: Sequence[str], identity: Sequence[str], clauses: MergeClauses) -> str:
    """Rows of the model that remain after conditions and skipped steps. Every row either matches a stored one or is new."""
    picked = ", ".join(f"{quoted(clauses.source)}.{quoted(name)}" for name in columns)
    same = _same(identity, clauses.source, clauses.target)
    begun = f"select {picked} from {source} as {quoted(clauses.source)}"
    joined = f"join {target} as {quoted(clauses.target)} on {same}"
    matched = f"{begun} left semi {joined}{_and(clauses.matched_condition)}"
    new = f"{begun} left anti {joined}{_where(clauses.not_matched_condition)}"
    chosen = [text for text, skipped in ((matched, clauses.skip_matched), (new, clauses.skip_not_matched)) if not skipped]
    return " union all ".join(chosen) or f"{begun} where false"


def rows_by_source(source: str, target: str, expressions: Sequence[str], identity: Sequence[str], clauses: MergeClauses) -> str:
    """`expressions` over the stored rows that `not_matched_by_source_action` applies to."""
    same = _same(identity, clauses.target, clauses.source)
    unmatched = f"{target} as {quoted(clauses.target)} left anti join {source} as {quoted(clauses.source)} on {same}"
    return f"select {', '.join(expressions)} from {unmatched}{_where(clauses.by_source_condition)}"


def assigned_columns(types: Mapping[str, str], clauses: MergeClauses) -> list[str]:
    """Expressions for the columns (with these types) of a stored row, as the action sets them."""
    values = {column.lower(): text for column, text in clauses.assignments}
    return [
        f"cast(({values[name.lower()]}) as {kind}) as {quoted(name)}"
        if name.lower() in values
        else f"{quoted(clauses.target)}.{quoted(name)} as {quoted(name)}"
        for name, kind in types.items()
    ]


def _same(identity: Sequence[str], left: str, right: str) -> str:
    return " and ".join(f"{quoted(left)}.{quoted(name)} <=> {quoted(right)}.{quoted(name)}" for name in identity)


def _and(condition: str | None) -> str:
    return f" and ({condition})" if condition else ""


def _where(condition: str | None) -> str:
    return f" where ({condition})" if condition else ""
