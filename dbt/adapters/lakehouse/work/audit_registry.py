"""Audits of the running command, found here because dbt opens connections without the adapter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import wraps
from typing import Any

import click
from dbt_common.events.event_manager_client import add_callback_to_manager

from dbt.adapters.lakehouse.bridge.shapes import HeldTables
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.writing.audits import COMMANDS, Audits

_MARK = "_lakehouse_wrapped"
_current: list[Audits] = []


def begin_audits(warehouse: Warehouse, nodes: Mapping[str, Any], command: str) -> None:
    """Start the audits of a command that has parsed its project. dbt's events report how nodes end, before hooks get the results."""
    end_audits()
    if command not in COMMANDS:
        return
    audits = Audits(warehouse, nodes, command, is_retry=_is_retry())
    _current.append(audits)
    if audits.watches:
        add_callback_to_manager(lambda message: _note(audits, message))


def hand_over_results() -> None:
    """Give the audits dbt-core's results before they publish, so that they can mark what was not published.

    dbt-core has no hook for that, so its method is wrapped. It would show an error raised in its last hooks as a keyboard interrupt, and
    `dbt retry` would not see it. Without that method nothing is wrapped, and the error is raised.
    """
    task = getattr(sys.modules.get("dbt.task.run"), "RunTask", None)
    known = getattr(task, "after_run", None)
    if known is None or hasattr(known, _MARK):
        return

    @wraps(known)
    def after_run(self: Any, adapter: Any, results: Any) -> Any:
        audits = current_audits()
        if audits is not None and adapter.type() == "lakehouse":
            audits.results = results
        return known(self, adapter, results)

    setattr(after_run, _MARK, True)
    task.after_run = after_run  # type: ignore[union-attr]


def _is_retry() -> bool:
    """True for `dbt retry`. It runs under the name of the command that it repeats; the command line says what was typed."""
    typed = click.get_current_context(silent=True)
    return typed is not None and typed.info_name == "retry"


def end_audits() -> None:
    """End of the command: drop what was not published, and leftovers of killed runs."""
    while _current:
        _current.pop().close()


def current_audits() -> Audits | None:
    """Audits of the current run; None if it has none."""
    return _current[-1] if _current and _current[-1].watches else None


def held_tables(node: str) -> HeldTables | None:
    """Held-back tables that the connection of a node sees."""
    audits = current_audits()
    return audits.seen_by(node) if audits is not None else None


def note_statement(node: str, sql: str) -> None:
    """Record a statement that the connection of a node is about to run."""
    audits = current_audits()
    if audits is not None:
        audits.ran(node, sql)


def _note(audits: Audits, message: Any) -> None:
    if message.info.name == "NodeFinished":
        audits.note(message.data.node_info.unique_id, message.data.run_result.status)
