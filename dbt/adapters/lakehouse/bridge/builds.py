"""Builds in several commits, as those of microbatch models: until the last one the properties of the table say so, so that a build that was
killed is made again. dbt-core would go on with the newest batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt.adapters.lakehouse.later import Later
from lakehouse_engine import options

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_alter = Later("lakehouse_engine.write.alter")
_processes = Later("lakehouse_engine.timeline.processes")


def build_of(invocation_id: str, node: str) -> str:
    """What the build of a model in one run is known by."""
    return f"{invocation_id} {node}"


def begin_build(warehouse: Warehouse, table: Any, build: str) -> None:
    """Before its first commit. `build` by `build_of`."""
    _say(warehouse, table, _processes.begin_work(build).decode())


def end_build(warehouse: Warehouse, schema: str, identifier: str, build: str, *, whole: bool) -> None:
    """Nobody is at work on it any more; with `whole` nothing of it is missing, or dbt has told what is."""
    _processes.end_work(build)
    if whole and _signature(warehouse, schema, identifier).get("nonce") == build:
        _say(warehouse, warehouse.table(schema, identifier), None)


def is_unfinished(warehouse: Warehouse, schema: str, identifier: str, build: str) -> bool:
    """Whether a build of the table was killed, or `build` makes one again. Of one that began on another machine nobody knows, and making it
    again loses nothing.
    """
    known = _signature(warehouse, schema, identifier)
    is_elsewhere = known.get("nonce") != build and _processes.is_of_this_machine(known) and _processes.may_be_at_work(known)
    return bool(known) and not is_elsewhere


def _say(warehouse: Warehouse, table: Any, who: str | None) -> None:
    _alter.set_unfinished(table.storage, who, lock_timeout_ms=options.LOCK_TIMEOUT_MS.read(warehouse.options))


def _signature(warehouse: Warehouse, schema: str, identifier: str) -> dict[str, object]:
    if warehouse.kind(schema, identifier) != "table":
        return {}
    found: dict[str, object] = _processes.parse_signature((warehouse.table(schema, identifier).config.unfinished_build or "").encode())
    return found
