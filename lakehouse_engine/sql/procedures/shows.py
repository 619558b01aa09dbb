"""Procedures that show a table's timeline. Rows are newest first; times of states are UTC instants."""

from __future__ import annotations

from dataclasses import astuple
from datetime import datetime
from itertools import islice

import pyarrow as pa

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.model.instant import Action, Instant, State, format_instant_time
from lakehouse_engine.model.order import in_time_order, is_later
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieCompactionPlan
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.sql.procedures.arguments import TABLE, Argument, Kind
from lakehouse_engine.sql.procedures.procedure import FILTER, LONG, PATH, TEXT, Rows, Values, procedure
from lakehouse_engine.table_services import TableServices
from lakehouse_engine.view.history import history
from lakehouse_engine.view.state_times import state_times
from lakehouse_engine.view.table_state import TableState

_NO_COMMIT = (None, "", "null")


def _show_commits(table: TableServices, values: Values) -> Rows:
    state = table.state
    times = state_times(state)
    for instant in islice(reversed(state.timeline.completed().writes().instants), values["limit"]):
        metadata = state.commit_metadata(instant)
        stats = list(metadata.write_stats())
        updated = sum(stat.prev_commit not in _NO_COMMIT for stat in stats)
        yield (
            instant.requested_time,
            _time(times.get(instant)),
            str(instant.action),
            sum(stat.total_write_bytes for stat in stats),
            len(stats) - updated,
            updated,
            len(metadata.partition_to_write_stats),
            sum(stat.num_writes for stat in stats),
            sum(stat.num_update_writes for stat in stats),
            sum(stat.total_write_errors for stat in stats),
            str(metadata.operation_type) if metadata.operation_type else None,
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_deletes for stat in stats),
        )


def _show_timeline(table: TableServices, values: Values) -> Rows:
    state_now, left = table.state, values["limit"]
    times = state_times(state_now)
    for entry in history(state_now, left, begin=values["startTime"] or "", end=values["endTime"]):
        left -= 1
        reached = {state: _reached(times, entry.instant, Action(entry.action), state) for state in State}
        rolled_back = entry.note if entry.action in (Action.ROLLBACK, Action.RESTORE) else None
        yield (entry.instant, entry.action, entry.state.upper(), *reached.values(), "ACTIVE", rolled_back, entry.note)
    if values["showArchived"]:
        yield from _archived(state_now, values["startTime"], values["endTime"], left)


def _archived(state: TableState, begin: str | None, end: str | None, limit: int) -> Rows:
    """Archived instants that are no longer on the active timeline."""
    reached: dict[tuple[str, Action], dict[State, str | None]] = {}
    active = {(one.requested_time, one.action.completes_as) for one in state.timeline}
    for entry in state.archived_timeline.entries():
        key = entry.instant.requested_time, entry.instant.action.completes_as
        is_asked = not is_later(begin or "", key[0]) and (end is None or not is_later(key[0], end))
        if key not in active and is_asked:
            reached.setdefault(key, {})[entry.instant.state] = entry.transition_time
    by_action = sorted(reached.items(), key=lambda found: found[0][1], reverse=True)
    for (time, action), states in in_time_order(by_action, lambda found: found[0][0], newest_first=True)[:limit]:
        newest = max(states, key=lambda one: one.rank)
        yield (time, str(action), newest.upper(), *(states.get(one) for one in State), "ARCHIVED", None, None)


def _reached(times: dict[Instant, int], time: str, action: Action, state: State) -> str | None:
    """A completed compaction is a commit that was requested as a compaction."""
    family = (one for one in Action if one.completes_as is action.completes_as)
    return next((_time(times[instant]) for one in family if (instant := Instant(time, one, state)) in times), None)


def _show_compaction(table: TableServices, values: Values) -> Rows:
    state = table.state
    if state.config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedTableError(f"{state.config.name} is no merge-on-read table: it has no compactions", table=state.config.name)
    found = (instant for instant in reversed(state.timeline.instants) if instant.action.completes_as is Action.COMMIT)
    plans = ((instant, _compaction_plan(state, instant)) for instant in found)
    for instant, plan in islice(((instant, plan) for instant, plan in plans if plan is not None), values["limit"]):
        yield instant.requested_time, len(plan.operations or ()), instant.state.upper()


def _compaction_plan(state: TableState, instant: Instant) -> HoodieCompactionPlan | None:
    """Plan of a compaction in any state; None for other commits."""
    requested = Instant(instant.requested_time, Action.COMPACTION, State.REQUESTED)
    if state.storage.head(f"{state.format.timeline_folder}/{state.format.file_name(requested)}") is None:
        return None
    return state.active.plan(HoodieCompactionPlan, requested)


def _show_cleans(table: TableServices, values: Values) -> Rows:
    state = table.state
    times = state_times(state)
    timeline = state.active
    cleans = (one for one in reversed(state.timeline.completed().instants) if one.action is Action.CLEAN)
    for instant in islice(cleans, values["limit"]):
        clean = timeline.plan(HoodieCleanMetadata, instant)
        yield (
            instant.requested_time,
            _time(times.get(instant)),
            str(instant.action),
            clean.start_clean_time,
            clean.time_taken_in_millis,
            clean.total_files_deleted,
            clean.earliest_commit_to_retain,
            clean.last_completed_commit_timestamp,
            clean.version,
        )


def _show_savepoints(table: TableServices, values: Values) -> Rows:
    for one in islice(reversed(table.savepoints()), values["limit"]):
        yield one.instant, one.name, one.user, one.created_at, one.comment, one.partitions, one.files, one.bytes


def _show_writers(table: TableServices, values: Values) -> Rows:
    for one in islice(table.writers(), values["limit"]):
        yield astuple(one)


def _show_table_properties(table: TableServices, values: Values) -> Rows:
    return islice(sorted(table.config.properties.items()), values["limit"])


def _time(epoch_ms: int | None) -> str | None:
    return None if epoch_ms is None else format_instant_time(datetime.fromtimestamp(epoch_ms / 1000, UTC))


def _limit(default: int) -> Argument:
    return Argument("limit", Kind.COUNT, default)


SHOWS = (
    procedure(
        "show_commits",
        (TABLE, _limit(10)),
        {
            "commit_time": TEXT,
            "state_transition_time": TEXT,
            "action": TEXT,
            "total_bytes_written": LONG,
            "total_files_added": LONG,
            "total_files_updated": LONG,
            "total_partitions_written": LONG,
            "total_records_written": LONG,
            "total_update_records_written": LONG,
            "total_errors": LONG,
            "operation": TEXT,
            "inserts": LONG,
            "deletes": LONG,
        },
        _show_commits,
    ),
    procedure(
        "show_timeline",
        (
            TABLE,
            _limit(20),
            Argument("showArchived", Kind.FLAG, False),
            Argument("startTime", Kind.INSTANT),
            Argument("endTime", Kind.INSTANT),
        ),
        {
            "instant_time": TEXT,
            "action": TEXT,
            "state": TEXT,
            "requested_time": TEXT,
            "inflight_time": TEXT,
            "completed_time": TEXT,
            "timeline_type": TEXT,
            "rollback_info": TEXT,
            "note": TEXT,
        },
        _show_timeline,
        refused=(PATH, FILTER),
    ),
    procedure(
        "show_savepoints",
        (TABLE, _limit(10)),
        {
            "savepoint_time": TEXT,
            "name": TEXT,
            "savepointed_by": TEXT,
            "savepointed_at": LONG,
            "comments": TEXT,
            "partitions": LONG,
            "files": LONG,
            "bytes": LONG,
        },
        _show_savepoints,
        refused=(PATH, FILTER),
    ),
    procedure("show_compaction", (TABLE, _limit(20)), {"timestamp": TEXT, "operation_size": LONG, "state": TEXT}, _show_compaction),
    procedure(
        "show_cleans",
        (TABLE, _limit(10)),
        {
            "clean_time": TEXT,
            "state_transition_time": TEXT,
            "action": TEXT,
            "start_clean_time": TEXT,
            "time_taken_in_millis": LONG,
            "total_files_deleted": LONG,
            "earliest_commit_to_retain": TEXT,
            "last_completed_commit_timestamp": TEXT,
            "version": LONG,
        },
        _show_cleans,
        refused=(PATH, FILTER),
    ),
    procedure(
        "show_writers",
        (TABLE, _limit(100)),
        {
            "state": TEXT,
            "instant_time": TEXT,
            "action": TEXT,
            "program": TEXT,
            "host": TEXT,
            "pid": LONG,
            "thread": TEXT,
            "since": TEXT,
            "heartbeat_seconds": pa.float64(),
            "waits_for": TEXT,
        },
        _show_writers,
    ),
    procedure("show_table_properties", (TABLE, _limit(10_000)), {"key": TEXT, "value": TEXT}, _show_table_properties),
)
