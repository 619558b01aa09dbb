"""SQL of the writer: which rows of a staged batch are written, deleted or refused. Pure text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.lakehouse.columns import quoted
from dbt.adapters.lakehouse.config.clauses import SOURCE, TARGET
from lakehouse_engine.api.names import DELETED_AT


@dataclass(frozen=True)
class SnapshotColumns:
    """Names of a snapshot's own columns; `current` is the SQL of `dbt_valid_to_current`, if it is set."""

    scd_id: str
    valid_to: str
    current: str | None = None


def snapshot_changes(source: str, target: str, columns: Sequence[str], stored: Mapping[str, str], names: SnapshotColumns) -> str:
    """Rows to upsert: new versions that are not stored yet, and stored open versions that end now.

    An ending version keeps its stored values except for its end. dbt stages it with the source's values or with nulls, which would move it
    to another partition or sort it behind the stored one. `stored` gives the SQL of each column of `target`; a missing column is null in
    the ended version.

    A deleted row that comes back unchanged has the id of its ended version, and becomes a version of its own.
    """
    scd, until = quoted(names.scd_id), quoted(names.valid_to)
    still_open = f"({TARGET}.{until} is null)"
    if names.current:
        still_open = f"({TARGET}.{until} is null or {TARGET}.{until} = {names.current})"
    comes = f"{SOURCE}.dbt_change_type = 'insert'"
    came_back = f"{comes} and {TARGET}.{scd} is not null and not {still_open}"
    new_id = f"md5(concat({SOURCE}.{scd}, '|', cast(current_timestamp() as string)))"
    picked = {
        name.lower(): f"case when {comes} then {SOURCE}.{quoted(name)} else {stored.get(name, 'null')} end as {quoted(name)}"
        for name in columns
    }
    picked[names.scd_id.lower()] = f"case when {came_back} then {new_id} else {SOURCE}.{scd} end as {scd}"
    picked[names.valid_to.lower()] = f"{SOURCE}.{until}"
    return (
        f"select {', '.join(picked.values())} from {source} as {SOURCE} left join {target} as {TARGET} on {SOURCE}.{scd} = {TARGET}.{scd} "
        f"where ({comes} and {TARGET}.{scd} is null) or ({came_back}) "
        f"or ({SOURCE}.dbt_change_type in ('update', 'delete') and {TARGET}.{scd} is not null and {still_open})"
    )


def split_deleted(
    source: str, columns: Sequence[str], keys: Sequence[str], ordering: Sequence[str], condition: str, alias: str = SOURCE
) -> tuple[str, str]:
    """Queries for the rows to upsert and the rows to delete, if some rows are deletions (`condition`).

    `alias` is the condition's name for the rows. `keys` identify a record. If a record has both, its newest row by the ordering fields
    decides; on a tie, or without ordering fields, the deletion does.
    """
    deleted = f"coalesce({condition}, false)"
    window = f"over (partition by {', '.join(map(quoted, keys))})"
    paths = (quoted(name) if name in columns else ".".join(map(quoted, name.split("."))) for name in ordering)
    age = f"struct({', '.join(paths) or '1'})"
    last_deleted, last_kept = (f"max(case when {which} then {age} end) {window}" for which in (deleted, f"not {deleted}"))
    goes = f"coalesce({last_deleted} >= {last_kept}, {last_deleted} is not null)"
    picked = ", ".join(map(quoted, columns))
    marked = f"(select *, {deleted} as __dbt_deleted, {goes} as __dbt_goes from {source} as {quoted(alias)}) as {SOURCE}"
    return (
        f"select {picked} from {marked} where not __dbt_deleted and not __dbt_goes",
        f"select {picked} from {marked} where __dbt_deleted and __dbt_goes",
    )


def kept_as_deleted(kept: str, gone: str) -> str:
    """One query that joins both results of `split_deleted`, for tables that keep deleted rows."""
    live = f"select *, cast(null as timestamp) as {DELETED_AT} from ({kept})"
    return f"{live} union all select *, current_timestamp() as {DELETED_AT} from ({gone})"


def outside_predicates(
    source: str,
    target: str,
    unique: Sequence[str],
    keys: Sequence[str],
    predicates: Sequence[str],
    aliases: tuple[str, str] = (SOURCE, TARGET),
) -> str:
    """One row: how many rows of `source` match a row of `target` for which the predicates do not hold, and one such key.

    `unique` are the columns that identify a record. Bare column names in predicates are the stored row's. `aliases` are the predicates'
    names for both sides.
    """
    given, kept = map(quoted, aliases)
    same = " and ".join(f"{given}.{quoted(name)} <=> {kept}.{quoted(name)}" for name in unique)
    holds = " and ".join(f"({text})" for text in predicates)
    example = f"first(struct({', '.join(f'{given}.{quoted(name)}' for name in keys)}))"
    stored = f"select 1 from {target} as {kept} where {same} and not coalesce({holds}, false)"
    return f"select count(*) as many, cast({example} as string) as example from {source} as {given} where exists ({stored})"


def outside_condition(source: str, condition: str, absent: Mapping[str, str]) -> str:
    """One row: how many rows of `source` a condition on stored rows would not match, and one of them.

    `absent` are columns (with types) of the table that `source` lacks: its rows store null there.
    """
    nulls = "".join(f", cast(null as {kind}) as {quoted(name)}" for name, kind in absent.items())
    rows = f"(select *{nulls} from {source}) as {TARGET}"
    return f"select count(*) as many, cast(first(struct(*)) as string) as example from {rows} where not coalesce({condition}, false)"
