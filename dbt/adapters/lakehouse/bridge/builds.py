"""Builds that take several commits, such as microbatch models.

A table property marks the build until its last commit. If the build is killed, the next run finds the mark and builds again; dbt-core alone
would continue with the newest batches.
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
"""Property: the newest write before the build, empty for a new table. If no later write exists, nothing of the build is stored."""


def build_of(invocation_id: str, node: str) -> str:
    """Identifier of one model's build in one run."""
    return f"{invocation_id} {node}"


def begin_build(warehouse: Warehouse, table: HoodieTable, build: str) -> None:
    """Mark the table before the first commit of a build (`build` comes from `build_of`). A build that repeats an unfinished one keeps its
    start time.
    """
    mine, writes = api.work.parse_signature(api.work.begin_work(build)), _writes(table)

    def begun(before: str | None) -> str:
        known = _parsed(before)
        return json.dumps({**mine, _SINCE: _since(known) if _is_begun(known, writes) else _newest(writes)})

    _say(warehouse, table, begun)


def end_build(warehouse: Warehouse, schema: str, identifier: str, build: str, *, whole: bool) -> None:
    """Remove the mark: no process works on the build any more. `whole`: nothing is missing, or dbt has reported what is."""
    api.work.end_work(build)
    if whole and _said(warehouse, schema, identifier).get("nonce") == build:
        _say(warehouse, warehouse.table(schema, identifier), lambda now: None if _parsed(now).get("nonce") == build else now)


def is_unfinished(warehouse: Warehouse, schema: str, identifier: str, build: str) -> bool:
    """Return whether a build of the table was killed, or `build` is repeating one.

    The process of a build on another machine cannot be checked; building again loses nothing.
    """
    known = _said(warehouse, schema, identifier)
    if not known or (known.get("nonce") != build and _is_at_work(known)):
        return False
    return _is_begun(known, _writes(warehouse.table(schema, identifier)))


def forget_undone_build(warehouse: Warehouse, schema: str, identifier: str) -> None:
    """Forget, before a run, a build that failed before its first commit or was taken back: nothing of it is stored."""
    known = _said(warehouse, schema, identifier)
    if known and not _is_at_work(known):
        table = warehouse.table(schema, identifier)
        if not _is_begun(known, _writes(table)):
            _say(warehouse, table, lambda now: None if _parsed(now) == known else now)


def unfinished_build(table: HoodieTable) -> str | None:
    """The table's mark when the handle last looked, for `put_back_build`."""
    return table.seen.config.unfinished_build


def put_back_build(warehouse: Warehouse, table: HoodieTable, said: str | None) -> None:
    """Restore the mark that the table had when its rows were taken; None removes it."""
    if unfinished_build(table) != said:
        _say(warehouse, table, lambda _: said)


def _say(warehouse: Warehouse, table: HoodieTable, change: Callable[[str | None], str | None]) -> None:
    api.tables.set_unfinished(table, change, warehouse.options)


def _said(warehouse: Warehouse, schema: str, identifier: str) -> dict[str, object]:
    if warehouse.kind(schema, identifier) != "table":
        return {}
    return _parsed(warehouse.look(schema, identifier).state.config.unfinished_build)


def _parsed(said: str | None) -> dict[str, object]:
    return api.work.parse_signature((said or "").encode())


def _is_at_work(known: dict[str, object]) -> bool:
    """Return whether the process is alive on this machine."""
    return api.work.is_of_this_machine(known) and api.work.may_be_at_work(known)


def _since(known: dict[str, object]) -> str:
    return str(known.get(_SINCE, ""))


def _is_begun(known: dict[str, object], writes: Any) -> bool:
    return bool(known) and (not _since(known) or len(writes.newer_than(_since(known))) > 0)


def _writes(table: HoodieTable) -> Any:
    """Timeline of completed writes."""
    return table.timeline.completed().writes()


def _newest(writes: Any) -> str:
    """Newest completed write; empty if there is none."""
    newest = writes.last()
    return str(newest.requested_time) if newest is not None else ""
