"""YAML values as SQL: mappings and lists of a unit test become structs, maps and arrays of their columns' types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.names import did_you_mean
from lakehouse_engine import api


def nested_literal(value: Any, kind: str) -> str:
    """Expression of the Spark type `kind` with this value. Raises `DbtRuntimeError` if the type cannot hold it."""
    name, parts = _parted(kind)
    if value is None:
        return f"cast(null as {kind})"
    if name == "struct" and isinstance(value, Mapping):
        return f"cast({_struct(value, parts, kind)} as {kind})"
    if name == "map" and isinstance(value, Mapping):
        key, item = parts
        members = [f"{nested_literal(one, key)}, {nested_literal(other, item)}" for one, other in value.items()]
        return f"cast(map({', '.join(members)}) as {kind})"
    if name == "array" and isinstance(value, list | tuple):
        return f"cast(array({', '.join(nested_literal(one, parts[0]) for one in value)}) as {kind})"
    if parts and isinstance(value, str):
        return f"cast({value} as {kind})"  # an expression, as for a whole column
    if parts or isinstance(value, Mapping | list | tuple):
        raise DbtRuntimeError(f"a unit test gives {value!r} for the type {kind}: {_SHAPES.get(name, 'give a plain value')}")
    return f"cast({api.sql.quote_string(str(value).lower() if isinstance(value, bool) else str(value))} as {kind})"


_SHAPES = {
    "struct": "give a mapping of its members",
    "map": "give a mapping of its keys to their values",
    "array": "give a list",
}


def _struct(value: Mapping[Any, Any], parts: list[str], kind: str) -> str:
    members = dict(part.split(":", 1) for part in parts)
    given = {str(name).lower(): one for name, one in value.items()}
    known = [name.lower() for name in members]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, list(members)) or f"; it has {', '.join(members)}"
            raise DbtRuntimeError(f"a unit test gives the member '{name}', which {kind} does not have{hint}")
    inner = [f"{api.sql.quote_string(name)}, {nested_literal(given.get(name.lower()), kind)}" for name, kind in members.items()]
    return f"named_struct({', '.join(inner)})"


def _parted(kind: str) -> tuple[str, list[str]]:
    """Name and parts of a type: for `map<string,array<int>>` "map", "string" and "array<int>"; a plain type has no parts."""
    name, sign, rest = kind.strip().partition("<")
    if not sign:
        return name.lower(), []
    parts, depth, begin = [], 0, 0
    inner = rest.rstrip()[:-1]
    for place, letter in enumerate(inner):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(inner[begin:place].strip())
            begin = place + 1
    parts.append(inner[begin:].strip())
    return name.strip().lower(), [part for part in parts if part]
