"""Protected runs: savepoints before the first model, and a restore of the tables whose tests failed.

Every table that the run will build gets a savepoint, so that no clean, compaction or archiving of the run can prevent a restore. After the
run, tables with a failed test are restored, and the run's savepoints are dropped. Savepoints of a killed run are dropped by the next run in
which no test of the table fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.builds import put_back_build, unfinished_build
from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.runs import begin_run, drop_left_savepoints, end_run
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.names import own_savepoint
from dbt.adapters.lakehouse.writing.selection import Selected, table_of

FAILED = ("fail", "error")
"""Outcomes of a test at error severity that did not pass."""


@dataclass(frozen=True)
class Guard:
    """A table when the run began. `own`: this run took the savepoint at `instant`; `build`: the table's mark of an unfinished build."""

    table: Selected
    instant: str
    own: bool
    build: str | None = None


@dataclass
class Guards:
    """Guarded tables of one invocation, by node."""

    invocation_id: str
    guarded: dict[str, Guard] = field(default_factory=dict)

    def protect(self, warehouse: Warehouse, nodes: Mapping[str, Any], selected: Iterable[str]) -> list[str]:
        """Take a savepoint of every selected node's table that has a commit; returns lines to print."""
        for unique_id in sorted(set(selected)):
            table = table_of(nodes[unique_id]) if unique_id in nodes else None
            if table is not None and warehouse.kind(table.schema, table.identifier) == "table":
                self._guard(warehouse, unique_id, table)
        return [f"Protected {len(self.guarded)} table(s): a failed test restores the tables it guards"] if self.guarded else []

    def _guard(self, warehouse: Warehouse, unique_id: str, table: Selected) -> None:
        stored = warehouse.table(table.schema, table.identifier)
        newest = stored.timeline.completed().writes().last()
        if newest is None:
            return
        own = newest.requested_time not in {one.instant for one in stored.savepoints()}
        if own:
            name = own_savepoint(self.invocation_id)
            stored.savepoint(newest.requested_time, name=name, comment=begin_run(self.invocation_id))
        self.guarded[unique_id] = Guard(table, newest.requested_time, own, unfinished_build(stored))

    def settle(self, warehouse: Warehouse, results: Iterable[Any]) -> tuple[list[str], list[str]]:
        """Restore what failed tests guard and drop this run's savepoints; returns lines to print, and failures."""
        lines: list[str] = []
        failures: list[str] = []
        causes = failed_tests(results)
        for unique_id, tests in causes.items():
            if unique_id not in self.guarded:
                lines.append(f"Not restored: {unique_id} had no table when the run began ({', '.join(tests)} failed)")
        for unique_id, guard in self.guarded.items():
            try:
                line = _settle(warehouse, guard, causes.get(unique_id, []))
            except Exception as error:  # noqa: PERF203 - one table that cannot be restored must not keep the others
                found = dbt_error(error)
                if not isinstance(found, DbtRuntimeError):
                    raise
                failures.append(f"{guard.table}: {found.msg}")
            else:
                lines += [line] if line else []
        self.guarded.clear()
        end_run(self.invocation_id)
        return lines, failures


def _settle(warehouse: Warehouse, guard: Guard, tests: list[str]) -> str | None:
    if not _is_still_there(warehouse, guard):
        if tests:
            raise DbtRuntimeError(f"the run built it anew, and with the old table its history is gone ({', '.join(tests)} failed)")
        return None
    stored = warehouse.table(guard.table.schema, guard.table.identifier)
    newest = stored.timeline.completed().writes().last()
    line = None
    if tests and (newest is None or newest.requested_time != guard.instant):
        # If two runs protect one table, the first one owns the savepoint and drops it.
        done = stored.restore(guard.instant) if _is_pinned(stored, guard) else stored.restore(to=guard.instant)
        put_back_build(warehouse, stored, guard.build)
        line = (
            f"Restored {guard.table} to {guard.instant}: {len(done.rolled_back)} commit(s) with {done.rows_taken_back:,} row change(s) "
            f"taken back because {', '.join(tests)} failed"
        )
    if guard.own and _is_pinned(stored, guard):
        stored.delete_savepoint(guard.instant)
    if not tests:  # otherwise it may be needed to go back further
        drop_left_savepoints(stored)
    return line


def _is_still_there(warehouse: Warehouse, guard: Guard) -> bool:
    """True if it still is the guarded table, not a replacement with another key, layout or type."""
    schema, identifier = guard.table.schema, guard.table.identifier
    if warehouse.kind(schema, identifier) != "table":
        return False
    stored = warehouse.table(schema, identifier)
    return _is_pinned(stored, guard) or bool(stored.timeline.completed().writes().contains(guard.instant))


def _is_pinned(stored: Any, guard: Guard) -> bool:
    return any(one.instant == guard.instant for one in stored.savepoints())


def failed_tests(results: Iterable[Any]) -> dict[str, list[str]]:
    """Names of failed tests of error severity by the node that they guard."""
    causes: dict[str, list[str]] = {}
    for result in results:
        node = result.node
        if str(getattr(node, "resource_type", "")) == "test" and str(result.status) in FAILED:
            for unique_id in node.depends_on.nodes:
                causes.setdefault(unique_id, []).append(node.name)
    return causes
