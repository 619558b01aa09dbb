"""Fits a model's columns to its table's: `on_schema_change`, and which column a config means. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError, DbtDatabaseError

from dbt.adapters.lakehouse.names import did_you_mean
from lakehouse_engine import api

if TYPE_CHECKING:
    from lakehouse_engine.api.frames import Members


@dataclass(frozen=True)
class ColumnPlan:
    """What to do with a batch. `select` are SQL expressions over it, in the table's column order with new columns last.

    `evolve`: this write adds columns or members to the table, or the batch leaves some out (stored rows keep theirs, new rows get null).
    `reshape`: expressions over the table that give it its new columns before the write (dropped, or of a changed type); None if they stay.
    """

    select: tuple[str, ...]
    evolve: bool = False
    reshape: tuple[str, ...] | None = None


def quoted(name: str) -> str:
    """The name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def resolve(wanted: Sequence[str], columns: Sequence[str], config: str, model: str) -> list[str]:
    """Columns that a config names, spelled as in the query. Raises `DbtDatabaseError`."""
    by_lower = {column.lower(): column for column in columns}
    found = []
    for name in wanted:
        plain = name.strip("`")
        if plain.lower() not in by_lower:
            hint = did_you_mean(plain, columns) or f"; it has {', '.join(columns)}"
            raise DbtDatabaseError(f"{model}: {config} names the column '{plain}', which the model does not have{hint}")
        found.append(by_lower[plain.lower()])
    return found


def resolve_paths(wanted: Sequence[str], columns: Sequence[str], config: str, model: str) -> list[str]:
    """Like `resolve`; a name may lead into a struct (`n.t`), whose members the engine checks."""
    known, found = {column.lower() for column in columns}, []
    for name in wanted:
        plain = name.replace("`", "")
        root, _, rest = ("", "", "") if plain.lower() in known else plain.partition(".")
        [column] = resolve([root or plain], columns, config, model)
        found.append(f"{column}.{rest}" if rest else column)
    return found


def plan_columns(
    model: str, policy: str, table: Mapping[str, str], batch: Mapping[str, str], members: Mapping[str, Members] | None = None
) -> ColumnPlan:
    """Fit `batch` (column -> Spark type) to `table` under `on_schema_change`. Raises `CompilationError` if that is `fail`.

    `members`: struct columns whose two types differ. Spark would cast their members by position.
    """
    inner = members or {}
    theirs = {name.lower(): name for name in batch}
    ours = {name.lower() for name in table}
    added = [name for name in batch if name.lower() not in ours]
    missing = [name for name in table if name.lower() not in theirs]
    others = [name for name in table if name.lower() in theirs and batch[theirs[name.lower()]] != table[name]]
    changed = [name for name in others if name not in inner or inner[name].differs]
    if policy == "fail" and (added or missing or changed):
        raise CompilationError(_out_of_sync(model, added, missing, changed, table, batch, theirs))
    if policy in ("ignore", "fail"):
        return ColumnPlan(_ignoring(model, table, batch, theirs, missing))
    if policy == "append_new_columns":
        return _appending(table, batch, theirs, added, inner)
    return _syncing(table, batch, theirs, added, missing, changed, inner)


def _ignoring(
    model: str, table: Mapping[str, str], batch: Mapping[str, str], theirs: Mapping[str, str], missing: Sequence[str]
) -> tuple[str, ...]:
    if missing:
        raise DbtDatabaseError(
            f"{model}: the model no longer has the column(s) {', '.join(missing)} of its table; "
            "set on_schema_change to append_new_columns or sync_all_columns, or run it with --full-refresh"
        )
    return tuple(_stored(name, kind, theirs, batch) for name, kind in table.items())


def _appending(
    table: Mapping[str, str], batch: Mapping[str, str], theirs: Mapping[str, str], added: Sequence[str], members: Mapping[str, Members]
) -> ColumnPlan:
    kept = [
        _met(name, theirs, members) if name in members else _stored(name, kind, theirs, batch)
        for name, kind in table.items()
        if name.lower() in theirs
    ]
    evolve = bool(added) or len(kept) < len(table) or any(one.grows for one in members.values())
    return ColumnPlan((*kept, *map(quoted, added)), evolve=evolve)


def _syncing(
    table: Mapping[str, str],
    batch: Mapping[str, str],
    theirs: Mapping[str, str],
    added: Sequence[str],
    missing: Sequence[str],
    changed: Sequence[str],
    members: Mapping[str, Members],
) -> ColumnPlan:
    kept = [name for name in table if name not in missing]
    select = (*(_met(name, theirs, members) for name in kept), *map(quoted, added))
    if not missing and all(name in members and not members[name].changes for name in changed):
        return ColumnPlan(select, evolve=bool(added) or any(one.grows for one in members.values()))
    reshape = [_reshaped(name, table[name], batch[theirs[name.lower()]], members) if name in changed else quoted(name) for name in kept]
    reshape += [f"cast(null as {batch[name]}) as {quoted(name)}" for name in added]
    return ColumnPlan(select, reshape=tuple(reshape))


def _met(name: str, theirs: Mapping[str, str], members: Mapping[str, Members]) -> str:
    """The batch's column under the table's name, its members in the table's order."""
    value = quoted(theirs[name.lower()])
    return f"{members[name].of_given(value) if name in members else value} as {quoted(name)}"


def _reshaped(name: str, given: str, kind: str, members: Mapping[str, Members]) -> str:
    """A stored column cast to its new type."""
    value = quoted(name)
    return f"{members[name].of_stored(value) if name in members else _cast(value, given, kind)} as {value}"


def _stored(name: str, kind: str, theirs: Mapping[str, str], batch: Mapping[str, str]) -> str:
    """The batch's column as the table stores it; cast if that is safe."""
    source = theirs[name.lower()]
    given = batch[source]
    expression = _cast(quoted(source), given, kind) if given != kind and api.sql.storable(given, kind) else quoted(source)
    return f"{expression} as {quoted(name)}"


def _cast(value: str, given: str, kind: str) -> str:
    if any("<" in one for one in (given, kind)):
        return f"cast({value} as {kind})"
    return api.sql.stored_as(value, given, kind)


def _out_of_sync(
    model: str,
    added: Sequence[str],
    missing: Sequence[str],
    changed: Sequence[str],
    table: Mapping[str, str],
    batch: Mapping[str, str],
    theirs: Mapping[str, str],
) -> str:
    types = [f"{name} {table[name]} -> {batch[theirs[name.lower()]]}" for name in changed]
    return (
        f"{model}: the columns of the model and of its table differ and on_schema_change is 'fail'. "
        f"Not in the table: {', '.join(added) or 'none'}. Not in the model: {', '.join(missing) or 'none'}. "
        f"Other types: {', '.join(types) or 'none'}. "
        "Set on_schema_change to append_new_columns or sync_all_columns, or run the model with --full-refresh."
    )
