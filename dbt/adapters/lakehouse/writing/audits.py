"""Write, audit, publish: a model with `audit: true` is written to a hidden copy, tested there, and then written to its table.

Before the model's first statement its table is copied (files are shared) into a hidden folder of the warehouse. The model, its tests and
audited models below it see the copy under the table's name. Each write and its rows are recorded. Once the tests have passed, the writes
are repeated on the table, which must be unchanged since the copy: what is published is what was tested. The folder is removed at the end of
the run, or by the next run if this process dies.

Tables that are published together are locked together and checked before the first is written, so no other commit comes between them,
except for a table that is rebuilt. There is no step that changes several tables at once: a process killed between two leaves the second as
it was.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import EngineError, response_of
from dbt.adapters.lakehouse.bridge.shapes import HeldTables
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.writing.results import PASSED, mark_results
from dbt.adapters.lakehouse.writing.selection import Selected, table_of

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.writing.writes import TableWriter

logger = AdapterLogger("Lakehouse")

RUNS_TESTS = frozenset({"build", "retry"})
COMMANDS = RUNS_TESTS | {"run", "seed", "snapshot"}
"""Commands of dbt that build models."""
_LEFT_OUT = "did not run"
_NOT = "Not published: "

_TIMES = 3
"""How often a table is tested again because others committed."""

Act = Callable[["TableWriter", Any], Any]
Job = Callable[[Warehouse], Any]
Publish = Callable[[Job], Any]
"""Runs a job with a warehouse of its own, in which tables are what everybody sees."""


@dataclass
class Held:
    """A table whose writes are held back. `state` is what was copied (None: no table), `newest` is its model's last write."""

    node: str
    table: Selected
    state: Any
    newest: str | None
    is_blind: bool = True
    """True if its rows do not depend on the table's content, so that they can be merged into another state of it."""
    is_built_anew: bool = False
    """True if another table replaces it. That locks and checks by itself, and cannot run under the old table's lock."""
    writes: list[Job] = field(default_factory=list)
    is_over: bool = False
    """True once it is published, or never will be."""

    @property
    def place(self) -> tuple[str, str]:
        return self.table.schema, self.table.identifier

    def check(self, house: Warehouse) -> None:
        """Raise `ChangedSinceReadError` if the table has changed since the copy, `DbtRuntimeError` if it did not exist."""
        if self.state is not None:
            house.check_held(*self.place, self.state)
        elif house.kind(*self.place) == "table":
            raise DbtRuntimeError(f"somebody else made {self.table}, which was not there; run the model again")

    def write(self, house: Warehouse) -> list[Any]:
        """Repeat the writes on the table."""
        return [job(house) for job in self.writes]


@dataclass
class _Publication:
    """Tables that are published together. `done` has dbt's messages for the published ones, `at` is the one in progress."""

    group: list[Held]
    done: dict[Selected, str] = field(default_factory=dict)
    at: Held | None = None

    def write(self, house: Warehouse) -> None:
        """Publish all or none, as far as other writers go: all are checked under their locks before the first is written."""
        with ExitStack() as locks:
            for held in sorted(self.group, key=lambda held: held.place):  # in a fixed order, so that no two processes wait for each other
                self.at = held
                if held.state is not None and not held.is_built_anew:
                    locks.enter_context(house.locked(*held.place))
            for held in self.group:
                self.at = held
                held.check(house)
            for held in self.group:
                self.at = held
                self.done[held.table] = _said(held.write(house))


class Audits:
    """Audits of one command. `nodes` are the manifest's, `command` is dbt's name of the command (of the repeated one if `is_retry`)."""

    def __init__(self, warehouse: Warehouse, nodes: Mapping[str, Any], command: str, *, is_retry: bool = False) -> None:
        self._is_retry = is_retry
        self._warehouse = warehouse
        self._nodes = nodes
        self._command = command
        self._audited = frozenset(name for name, node in nodes.items() if is_audited(node))
        self._tests = _tests_by_node(nodes, self._audited)
        self._held: dict[str, Held] = {}
        self._names: set[str] = set()
        self._area: Any = None
        self._outcomes: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._unpublished: dict[str, str] = {}
        self._guard = threading.RLock()
        self.results: Sequence[Any] | None = None
        """dbt-core's results of the run before its last hooks; None if they are not handed over."""

    @property
    def watches(self) -> bool:
        """True if anything is audited."""
        return bool(self._audited)

    def note(self, node: str, outcome: str) -> None:
        """How a node of the run ended, in dbt's terms."""
        with self._guard:
            self._outcomes[node] = outcome

    # -- while models and tests run

    def holds(self, node: str) -> bool:
        """True if writes of the node are held back."""
        return node in self._audited

    def seen_by(self, node: str) -> HeldTables | None:
        """Held-back tables that a node sees: audited models and tests see them, others do not."""
        with self._guard:
            if node in self._audited and node not in self._held:
                self._hold(node)
            return HeldTables(self._area.folder(), self._names) if self._held and self._sees(node) else None

    def _sees(self, node: str) -> bool:
        return node in self._audited or _kind(self._nodes.get(node)) == "test"

    def _hold(self, node: str) -> None:
        table = table_of(_as_mapping(self._nodes[node]))
        assert table is not None  # `config_findings` refuses audit of other materializations
        if self._command not in RUNS_TESTS and self._tests[node]:
            raise DbtRuntimeError(
                f"{node}: with audit it is published after its tests ({_listed(self._tests[node])}), and dbt {self._command} runs none: "
                "use dbt build"
            )
        if self._area is None:
            self._area = self._warehouse.staging_area()
        held = Held(node, table, None, None)
        self._copy(held)
        self._held[node] = held
        self._names.add(f"{table.schema}.{table.identifier}".lower())

    def _copy(self, held: Held) -> None:
        """Copy the table as it is now."""
        folder = self._area.folder()
        self._warehouse.let_go(f"{folder}/{held.table.schema}/{held.table.identifier}")
        held.state = self._warehouse.hold(*held.place, folder) if self._warehouse.kind(*held.place) == "table" else None
        held.newest = held.state.instant if held.state is not None else None

    def write(self, node: str, writer: TableWriter, act: Act, house: Warehouse, rows: Any) -> Any:
        """Write rows to the copy and record the write."""
        held = self._held[node]
        again = house.keep_rows(rows, f"{self._area.folder()}/rows/{uuid.uuid4().hex}")
        held.is_blind = held.is_blind and house.expected(*held.place) is None

        def write(there: Warehouse) -> Any:
            if held.state is not None:
                there = there.resting_on(*held.place, held.state)
            return act(replace(writer, warehouse=there), again(there))

        shape = house.look(*held.place).shape if house.kind(*held.place) == "table" else None
        result = act(replace(writer, warehouse=house), again(house))
        held.is_built_anew = held.is_built_anew or (shape is not None and not shape.fits(house.look(*held.place).shape))
        held.newest = house.newest_write(*held.place)
        held.writes.append(write)
        return result

    def ran(self, node: str, sql: str) -> None:
        """Record a node's statement before it runs. A test's deciding statement can be repeated, unless it reads what another one stored.
        """
        known = self._nodes.get(node)
        if known is not None and "should_error" in sql and _kind(known) == "test" and not known.config.get("store_failures"):
            self._texts[node] = sql

    def also(self, node: str, job: Job) -> None:
        """Record something else to do on publishing."""
        self._held[node].writes.append(job)

    # -- publishing

    def before(self, node: str, publish: Publish) -> list[str]:
        """Publish what a node that is not audited is about to read. dbt starts the node when the tests of its inputs are over.

        Returns lines to print. Raises `DbtRuntimeError` for what cannot be published.
        """
        if self._sees(node):
            return []
        self._check_not_left_behind(node)
        if not self._held:
            return []
        above = _above(node, self._nodes)
        with self._guard:
            waiting = [held for name, held in self._held.items() if name in above and not held.is_over]
            lines, failures = self._settle(waiting, publish)
            lines += [f"{_NOT}{self._unpublished[name]}" for name in self._unpublished.keys() & above - {one.node for one in waiting}]
        if any(line.startswith(_NOT) for line in lines) or failures:
            raise DbtRuntimeError(f"{node} reads what is not published (with audit it would read what is held back): {'; '.join(lines)}")
        return lines

    def settle(self, publish: Publish) -> tuple[list[str], list[str]]:
        """Publish what passed at the end of the run; returns lines to print, and failures that the run does not know. Audited models that
        read each other, or share a test, are published together or not at all.
        """
        lines: list[str] = []
        failures: list[str] = []
        with self._guard:
            for group in self._groups():
                more, wrong = self._settle(group, publish)
                lines += more
                failures += wrong
            failures += self._left_behind().values()
        return lines, failures

    def _left_behind(self) -> dict[str, str]:
        """Models whose tests a retry runs without building them: the held-back rows are gone, and the tests read the published ones."""
        if not self._is_retry:
            return {}
        tested = [name for name in self._audited - self._held.keys() if self._outcomes.keys() & set(self._tests[name])]
        return {
            name: f"{table_of(_as_mapping(self._nodes[name]))}: dbt retry tests it without building it again, and what the earlier command"
            f" wrote of it is gone; use dbt build --select {self._nodes[name].name}"
            for name in sorted(tested)
        }

    def _check_not_left_behind(self, node: str) -> None:
        """Raise `DbtRuntimeError` for a node that reads a model that `_left_behind` names."""
        behind = self._left_behind()
        found = [behind[name] for name in sorted(behind.keys() & _above(node, self._nodes))] if behind else []
        if found:
            raise DbtRuntimeError(f"{node} would read the rows of before: {'; '.join(found)}")

    def mark(self, failures: Iterable[str]) -> list[str]:
        """Mark in dbt's results what is not published; returns the failures that no result mentions."""
        unpublished = {name: f"{_NOT}{text}" for name, text in self._unpublished.items()}
        said = mark_results(self.results or (), unpublished, self._left_behind(), self._tests)
        return [text for text in failures if text not in said and f"{_NOT}{text}" not in said]

    def close(self) -> None:
        """Drop what was not published."""
        with self._guard:
            if self._area is not None:
                self._area.remove()
            self._area = None
            self._held.clear()
            self._names.clear()
        try:
            self._warehouse.remove_dead_stages()
        except EngineError as error:
            logger.warning(f"What killed runs left in {self._warehouse.root} could not be removed ({error}); the next run does")

    def _settle(self, group: list[Held], publish: Publish) -> tuple[list[str], list[str]]:
        reasons = {held.table: reason for held in group if (reason := self._why_not(held))}
        failures = [f"{table}: {reason.text}" for table, reason in reasons.items() if not reason.is_known]
        publication = _Publication(group)
        for held in group:
            held.is_over = True
        if group and not reasons:
            try:
                self._publish(publication, publish)
            except DbtRuntimeError as error:
                failed = (publication.at or group[0]).table
                reasons[failed] = _Reason(str(error.msg))
                failures.append(f"{failed}: {error.msg}")
        for held in group:
            if held.table not in publication.done:
                self._unpublished[held.node] = _why(held.table, reasons)
        return [_line(held.table, publication.done, reasons) for held in group], failures

    def _publish(self, publication: _Publication, publish: Publish) -> None:
        """Raises `DbtRuntimeError`; nothing but what `publication` has as done is published then.

        If others have committed, rows that do not depend on the table are written to a copy of its new state and tested again.
        """
        held = publication.group[0]
        for _ in range(_TIMES if len(publication.group) == 1 and held.is_blind else 0):
            try:
                publish(publication.write)
                return
            except AuditOvertakenError as error:  # noqa: PERF203 - one attempt is a whole commit
                failed = self._test_again(held, publish)
                if failed:
                    raise DbtRuntimeError(f"{error.msg}; merged into what it is now, {', '.join(failed)}") from error
        publish(publication.write)

    def _test_again(self, held: Held, publish: Publish) -> list[str]:
        """Write to a new copy and run the tests on it; returns those that failed."""
        seen = HeldTables(self._area.folder(), self._names)
        self._copy(held)

        def check(house: Warehouse) -> list[str]:
            house = house.holding(seen)
            held.write(house)
            held.newest = house.newest_write(*held.place)
            return [f"{test}: {outcome}" for test in self._tests[held.node] if (outcome := self._retried(test, house)) not in PASSED]

        found: list[str] = publish(check)
        return found

    def _retried(self, test: str, house: Warehouse) -> str:
        sql = self._texts.get(test)
        if sql is None:
            return "its statement cannot be repeated"
        (row,) = house.sql(sql).collect()
        return "fail" if row["should_error"] else "pass"

    def _why_not(self, held: Held) -> _Reason | None:
        outcome = self._outcomes.get(held.node)
        if outcome != "success":
            return _Reason(f"{held.node}: {outcome or 'did not end'}", is_known=True)
        outcomes = {test: self._outcomes.get(test, _LEFT_OUT) for test in self._tests[held.node]}
        wrong = [f"{test}: {outcome}" for test, outcome in outcomes.items() if outcome not in PASSED]
        if wrong:
            return _Reason(", ".join(wrong), is_known=any(outcome not in (*PASSED, _LEFT_OUT) for outcome in outcomes.values()))
        newest = self._warehouse.holding(HeldTables(self._area.folder(), self._names)).newest_write(*held.place)
        if newest != held.newest:
            return _Reason(
                f"{newest} was written to it by something else than its model's own write, as a hook, and only that can be repeated: "
                "leave the hook out, or audit"
            )
        return None

    def _groups(self) -> list[list[Held]]:
        """Open audits in the order of their start, each with everything that it reads or is tested with."""
        waiting = [held for held in self._held.values() if not held.is_over]
        groups: list[list[Held]] = []
        for held in waiting:
            above = _above(held.node, self._nodes)
            tests = set(self._tests[held.node])
            joined = [group for group in groups if any(one.node in above or tests & set(self._tests[one.node]) for one in group)]
            groups = [group for group in groups if group not in joined]
            groups.append([*(one for group in joined for one in group), held])
        return groups


@dataclass(frozen=True)
class _Reason:
    """Why a table is not published. `is_known`: the run has failed for that reason, and reports it itself."""

    text: str
    is_known: bool = False


class AuditOvertakenError(DbtRuntimeError):
    """Other writers committed to a table between its copy and its publishing."""


def _line(table: Selected, done: Mapping[Selected, str], reasons: Mapping[Selected, _Reason]) -> str:
    if table in done:
        return f"Published {table}: {done[table]}"
    return f"{_NOT}{_why(table, reasons)}; it is as it was before the run"


def _why(table: Selected, reasons: Mapping[Selected, _Reason]) -> str:
    own = reasons.get(table)
    return f"{table}: {own.text if own is not None else 'it belongs to ' + ', '.join(map(str, reasons))}"


def _said(done: list[Any]) -> str:
    return "; ".join(str(response_of(one)) for one in done if one is not None)


def is_audited(node: Any) -> bool:
    """True if the model has the config `audit`."""
    return bool(getattr(node, "config", None) and node.config.get("audit"))


def _tests_by_node(nodes: Mapping[str, Any], audited: Iterable[str]) -> dict[str, list[str]]:
    """Tests of error severity for each node."""
    found: dict[str, list[str]] = {name: [] for name in audited}
    for name, node in nodes.items():
        if _kind(node) == "test" and str(node.config.get("severity") or "error").lower() == "error":
            for above in set(node.depends_on.nodes) & found.keys():
                found[above].append(name)
    return found


def _above(node: str, nodes: Mapping[str, Any]) -> set[str]:
    """All nodes that a node reads, directly or through others."""
    found: set[str] = set()
    pending = [node]
    while pending:
        depends = getattr(nodes.get(pending.pop()), "depends_on", None)
        new = [name for name in getattr(depends, "nodes", ()) if name not in found]  # a seed depends on macros only
        found.update(new)
        pending += new
    return found


def _kind(node: Any) -> str:
    kind = getattr(node, "resource_type", "")
    return str(getattr(kind, "value", kind))


def _as_mapping(node: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.to_dict(omit_none=False)
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
