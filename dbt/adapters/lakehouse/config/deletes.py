"""The config `deletes` of a model: `hard`, `soft`, or a mapping with `mode` and `purge_after`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.lakehouse.config.clauses import ALIASES, CLAUSE_KEYS
from dbt.adapters.lakehouse.names import did_you_mean

MODES = ("hard", "soft")
_KEYS = ("mode", "purge_after")
_TIME = re.compile(r"[1-9][0-9]{0,5} +(hours?|days?|weeks?)", re.IGNORECASE)


def deletes_softly(config: Mapping[str, Any]) -> bool:
    """True if deleted rows stay stored."""
    return str(_given(config).get("mode") or "hard").lower() == "soft"


def purge_after(config: Mapping[str, Any]) -> str | None:
    """How long deleted rows are kept, as a SQL interval; None keeps them for ever."""
    found = _given(config).get("purge_after")
    return None if found is None else str(found).strip()


def deletes_findings(name: str, config: Mapping[str, Any], strategy: str, *, has_key: bool, is_ordered: bool) -> Iterator[str]:
    """Find unknown values, and soft deletes under merge rules in which an older event never loses. Each finding starts with `name`."""
    given = _given(config)
    for key in given:
        if key not in _KEYS:
            yield f"{name}: deletes has no '{key}'; it has {' and '.join(_KEYS)}{did_you_mean(str(key), _KEYS)}"
    mode = str(given.get("mode") or "hard").lower()
    if mode not in MODES:
        yield f"{name}: deletes '{given['mode']}' is not one of {', '.join(MODES)}{did_you_mean(mode, MODES)}"
    after = purge_after(config)
    if after is not None and not _TIME.fullmatch(after):
        yield f"{name}: purge_after '{after}' is no number of hours, days or weeks, such as '30 days'"
    if mode == "hard" and after is not None:
        yield f"{name}: purge_after goes with deletes mode 'soft', whose deleted rows stay; set that, or leave it out"
    if mode == "soft":
        yield from _soft_findings(name, config, strategy, has_key=has_key, is_ordered=is_ordered)


def _soft_findings(name: str, config: Mapping[str, Any], strategy: str, *, has_key: bool, is_ordered: bool) -> Iterator[str]:
    if config.get("materialized") != "incremental" or strategy != "merge":
        yield f"{name}: deletes 'soft' needs an incremental model with the strategy 'merge': others compare no events"
        return
    if not (has_key and is_ordered):
        missing = "ordering_fields" if has_key else "a unique_key"
        yield f"{name}: deletes 'soft' needs {missing}: deleted rows are kept so that older events lose against them"
    clause = next((key for key in CLAUSE_KEYS if key not in ALIASES and config.get(key)), None)
    if clause is not None:
        yield f"{name}: deletes 'soft' does not go with {clause}, whose rows are chosen and deleted without their ordering; keep one"


def _given(config: Mapping[str, Any]) -> Mapping[str, Any]:
    value = config.get("deletes")
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else {"mode": value}
