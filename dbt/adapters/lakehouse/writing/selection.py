"""Tables that a run-operation selects: a model, a relation, every node with a tag, or all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.config.model_config import STORED, ModelConfig
from dbt.adapters.lakehouse.names import did_you_mean

_WAYS = ("model", "relation", "tag", "all")


@dataclass(frozen=True)
class Selected:
    """One table: the user's name for it, and its place. `options` are the engine options of its node."""

    name: str
    schema: str
    identifier: str
    options: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"


def select_tables(
    nodes: Mapping[str, Mapping[str, Any]], ways: Mapping[str, Any], exists: Any, defaults: Mapping[str, str] | None = None
) -> list[Selected]:
    """Tables selected by `ways` (exactly one of `model`, `relation`, `tag` and `all`), sorted by name.

    `nodes` is the graph's; `exists(schema, identifier)` says whether a table exists; `defaults` are the profile's options. By tag and by
    `all`, only existing tables count. Raises `DbtRuntimeError` if the selection is empty.
    """
    if isinstance(ways.get("all"), str):
        raise DbtRuntimeError(f"all is true or false, not the text '{ways['all']}'")
    given = [way for way in _WAYS if ways.get(way)]
    if len(given) != 1:
        raise DbtRuntimeError(f"say which tables: one of {', '.join(_WAYS)}; given: {', '.join(given) or 'none'}")
    way, value = given[0], ways[given[0]]
    if way == "relation":
        return [_relation(str(value), exists, defaults)]
    if way == "model":
        return [_model(nodes, str(value), exists, defaults)]
    found = [one for one in _stored(nodes, None if way == "all" else str(value), defaults) if exists(one.schema, one.identifier)]
    if not found:
        raise DbtRuntimeError("no table of this project is in the warehouse" if way == "all" else f"no table has the tag '{value}'")
    return sorted(found, key=str)


def table_of(node: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> Selected | None:
    """Table that stores a node of the graph; None for views, tests and the like."""
    kind = str(node.get("resource_type"))
    materialized = (node.get("config") or {}).get("materialized")
    if kind not in ("model", "snapshot", "seed") or materialized not in STORED:
        return None
    options = ModelConfig.from_node(node, defaults).options
    return Selected(str(node["name"]), str(node["schema"]), str(node.get("alias") or node["name"]), options)


def _relation(text: str, exists: Any, defaults: Mapping[str, str] | None) -> Selected:
    parts = [part.strip('`" ') for part in text.split(".")]
    if len(parts) != 2 or not all(parts):
        raise DbtRuntimeError(f"relation '{text}' is not of the form schema.table")
    if not exists(*parts):
        raise DbtRuntimeError(f"there is no table {text} in the warehouse")
    return Selected(text, parts[0], parts[1], dict(defaults or {}))


def _model(nodes: Mapping[str, Mapping[str, Any]], name: str, exists: Any, defaults: Mapping[str, str] | None) -> Selected:
    known = {str(node["name"]) for node in nodes.values() if table_of(node)}
    named = [node for node in nodes.values() if str(node["name"]) == name and node.get("resource_type") in ("model", "snapshot", "seed")]
    if not named:
        raise DbtRuntimeError(f"there is no model '{name}'{did_you_mean(name, known)}")
    tables = [table for node in named if (table := table_of(node, defaults))]
    if not tables:
        raise DbtRuntimeError(f"'{name}' is not stored as a table: its materialization is {named[0]['config'].get('materialized')}")
    if len(tables) > 1:
        raise DbtRuntimeError(f"several nodes are called '{name}': {', '.join(map(str, tables))}; give one of them as relation")
    if not exists(tables[0].schema, tables[0].identifier):
        raise DbtRuntimeError(f"'{name}' has no table yet: {tables[0]} is not in the warehouse; run the model first")
    return tables[0]


def _stored(nodes: Mapping[str, Mapping[str, Any]], tag: str | None, defaults: Mapping[str, str] | None) -> Iterator[Selected]:
    for node in nodes.values():
        table = table_of(node, defaults)
        if table is not None and (tag is None or tag in (node.get("tags") or ())):
            yield table
