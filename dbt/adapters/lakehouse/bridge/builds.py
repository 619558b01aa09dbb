"""Builds in several commits, as those of microbatch models: until the last one the properties of the table say so, so that a build that was
killed is made again. dbt-core would go on with the newest batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
    from lakehouse_engine.api.tables import HoodieTable

_SINCE = "since"
"""In what is said of a build: the newest write of before it; empty for a new table. Without later writes nothing of the build is there."""


def build_of(invocation_id: str, node: str) -> str:
    """What the build of a model in one run is known by."""
    return f"{invocation_id} {node}"


def begin_build(warehouse: Warehouse, table: HoodieTable, build: str) -> None:
    """Before its first commit. `build` by `build_of`. One that makes an unfinished one again began when that one did."""
    mine, writes = api.work.parse_signature(api.work.begin_work(build)), _writes(table)

    def begun(before: str | None) -> str:
        known = _parsed(before)
        return json.dumps({**mine, _SINCE: _since(known) if _is_begun(known, writes) else _newest(writes)})

    _say(warehouse, table, begun)


def end_build(warehouse: Warehouse, schema: str, identifier: str, build: str, *, whole: bool) -> None:
    """Nobody is at work on it any more; with `whole` nothing of it is missing, or dbt has told what is."""
    api.work.end_work(build)
    if whole and _said(warehouse, schema, identifier).get("nonce") == build:
        _say(warehouse, warehouse.table(schema, identifier), lambda now: None if _parsed(now).get("nonce") == build else now)


def is_unfinished(warehouse: Warehouse, schema: str, identifier: str, build: str) -> bool:
    """Whether a build of the table was killed, or `build` makes one again. Of one that began on another machine nobody knows, and making it
    again loses nothing.
    """
    known = _said(warehouse, schema, identifier)
    if not known or (known.get("nonce") != build and _is_at_work(known)):
        return False
    return _is_begun(known, _writes(warehouse.table(schema, identifier)))


def forget_undone_build(warehouse: Warehouse, schema: str, identifier: str) -> None:
    """Before a run: of a build that failed or was killed before its first commit, or was taken back, nothing is missing."""
    known = _said(warehouse, schema, identifier)
    if known and not _is_at_work(known):
        table = warehouse.table(schema, identifier)
        if not _is_begun(known, _writes(table)):
            _say(warehouse, table, lambda now: None if _parsed(now) == known else now)


def unfinished_build(table: HoodieTable) -> str | None:
    """What the table says of a build, for `put_back_build`."""
    return table.config.unfinished_build


def put_back_build(warehouse: Warehouse, table: HoodieTable, said: str | None) -> None:
    """The table's rows are those of when it said so of a build; None: it was whole, or it is replaced by all rows at once."""
    if table.config.unfinished_build != said:
        _say(warehouse, table, lambda _: said)


def _say(warehouse: Warehouse, table: HoodieTable, change: Callable[[str | None], str | None]) -> None:
    api.tables.set_unfinished(table, change, warehouse.options)


def _said(warehouse: Warehouse, schema: str, identifier: str) -> dict[str, object]:
    if warehouse.kind(schema, identifier) != "table":
        return {}
    return _parsed(unfinished_build(warehouse.table(schema, identifier)))


def _parsed(said: str | None) -> dict[str, object]:
    return api.work.parse_signature((said or "").encode())


def _is_at_work(known: dict[str, object]) -> bool:
    """Whether a process of this machine is."""
    return api.work.is_of_this_machine(known) and api.work.may_be_at_work(known)


def _since(known: dict[str, object]) -> str:
    return str(known.get(_SINCE, ""))


def _is_begun(known: dict[str, object], writes: Any) -> bool:
    return bool(known) and (not _since(known) or len(writes.newer_than(_since(known))) > 0)


def _writes(table: HoodieTable) -> Any:
    """The timeline of the completed writes."""
    return table.timeline.completed().writes()


def _newest(writes: Any) -> str:
    """The newest of them; empty without one."""
    newest = writes.last()
    return str(newest.requested_time) if newest is not None else ""
