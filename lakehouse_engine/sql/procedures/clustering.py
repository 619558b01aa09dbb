"""Procedures that cluster a table, and show its clusterings."""

from __future__ import annotations

from itertools import islice
from typing import Any

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.plans import HoodieClusteringGroup
from lakehouse_engine.services.cluster.fitting import groups_of, read_plan
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.sql.binding.partition_condition import partitions_where
from lakehouse_engine.sql.procedures.arguments import TABLE, Argument, Kind, Refused
from lakehouse_engine.sql.procedures.procedure import LONG, PATH, TEXT, Rows, Values, procedure
from lakehouse_engine.table_services import TableServices
from lakehouse_engine.view.plans import clustering_groups, may_cluster
from lakehouse_engine.view.table_state import TableState

_OPS = {
    "": "schedule_and_run",
    "scheduleandexecute": "schedule_and_run",
    "schedule_and_run": "schedule_and_run",
    "schedule": "schedule",
    "execute": "run",
    "run": "run",
}
"""Hudi's words for `op`: `execute` runs what is pending and schedules nothing."""
_PLANNED = ("order", "order_strategy", "predicate", "selected_partitions")
_SHOWN = Argument("show_involved_partition", Kind.FLAG, False)
_COLUMNS = {"timestamp": TEXT, "input_group_size": LONG, "state": TEXT, "involved_partitions": TEXT}
_HIDDEN = "*"
"""What Hudi shows for partitions that it is not asked for."""


def _run_clustering(table: TableServices, values: Values) -> Rows:
    """One row for each clustering, oldest first: what is pending is run, then what there is to do is planned and run."""
    op = _OPS.get((values["op"] or "").lower())
    if op is None:
        raise OptionError(f"CALL run_clustering: op => {values['op']!r} is not one of schedule, execute, scheduleAndExecute")
    planned = next((name for name in _PLANNED if values[name] is not None), None)
    if planned is not None and (op == "run" or values["instants"] is not None):
        raise OptionError(f"CALL run_clustering: {planned} is for a plan that is made; op => 'execute' and instants run those there are")
    for step, instant in _steps(table, op, values["instants"], dry_run=values["dry_run"]):
        arguments = {} if step == "run" else _asked(table, values)
        done = table.cluster(step, instant=instant, dry_run=values["dry_run"], options=values["options"], **arguments)
        if done.instant is not None or done.groups:
            partitions = _partitions(done.groups) if values[_SHOWN.name] else _HIDDEN
            yield done.instant, len(done.groups), done.state.upper(), partitions, done.files_planned, done.files_created, done.rows_written


def _steps(table: TableServices, op: str, instants: str | None, *, dry_run: bool) -> list[tuple[str, str | None]]:
    """Calls of `cluster`. Named instants are run, and nothing is scheduled. In a dry run, which leaves pending plans, the last call only
    plans.
    """
    state = table.state
    pending = [one.requested_time for one in pending_plans(state, state.format.clustering_action)]
    if instants is not None:
        if op == "schedule":
            raise OptionError("CALL run_clustering: instants name planned clusterings to run; op => 'schedule' plans one")
        return [("run", time.strip()) for time in instants.split(",")]
    if op == "schedule":
        return [("schedule", None)]
    runs: list[tuple[str, str | None]] = [("run", time) for time in pending]
    last = "schedule" if dry_run and runs else "schedule_and_run"
    return (runs or [("run", None)]) if op == "run" else [*runs, (last, None)]


def _asked(table: TableServices, values: Values) -> dict[str, Any]:
    """What of the arguments a plan is made of."""
    named = [path.strip() for path in (values["selected_partitions"] or "").split(",") if path.strip()]
    if values["predicate"] is not None:
        chosen = partitions_where(table.state, values["predicate"])
        named = [path for path in named if path in chosen] if named else chosen
    is_narrowed = values["predicate"] is not None or bool(named)
    order = values["order"]
    return {
        "order_by": None if order is None else [name.strip() for name in order.split(",") if name.strip()],
        "layout": values["order_strategy"],
        "partitions": named if is_narrowed else None,
    }


def _show_clustering(table: TableServices, values: Values) -> Rows:
    state = table.state
    found = (instant for instant in reversed(list(state.timeline)) if may_cluster(instant) and clustering_groups(state, instant))
    for instant in islice(found, values["limit"]):
        groups = groups_of(read_plan(state, _planned(state, instant)))
        yield instant.requested_time, len(groups), instant.state.upper(), _partitions(groups) if values[_SHOWN.name] else _HIDDEN


def _planned(state: TableState, instant: Instant) -> Instant:
    """The instant as its plan is named: a completed clustering is a replace commit in every version."""
    return Instant(instant.requested_time, state.format.clustering_action, instant.state)


def _partitions(groups: tuple[HoodieClusteringGroup, ...]) -> str:
    return ",".join(sorted({one.partition_path or "" for group in groups for one in group.slices or ()}))


CLUSTERING = (
    procedure(
        "run_clustering",
        (
            TABLE,
            Argument("predicate"),
            Argument("order"),
            _SHOWN,
            Argument("op"),
            Argument("order_strategy"),
            Argument("options", Kind.OPTIONS, {}),
            Argument("instants"),
            Argument("selected_partitions"),
            Argument("dry_run", Kind.FLAG, False),
        ),
        {**_COLUMNS, "files": LONG, "files_created": LONG, "rows_written": LONG},
        _run_clustering,
        refused=(PATH, Refused("limit", "it bounds the rows of Hudi's answer: put LIMIT n behind the call")),
    ),
    procedure("show_clustering", (TABLE, Argument("limit", Kind.COUNT, 20), _SHOWN), _COLUMNS, _show_clustering),
)
