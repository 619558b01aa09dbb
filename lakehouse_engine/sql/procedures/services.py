"""Procedures that change a table: savepoints and restores, compaction, cleaning, archiving.

Each has `dry_run` besides Hudi's arguments; it answers what would be done. Columns beyond Hudi's come last.
"""

from __future__ import annotations

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.services import RestoreResult
from lakehouse_engine.options import layered
from lakehouse_engine.options.services import CLEAN_COMMITS, CLEAN_HOURS, CLEAN_POLICY, CLEAN_VERSIONS, clean_policy_of
from lakehouse_engine.services.executor.scheduling import pending_plans
from lakehouse_engine.sql.procedures.arguments import TABLE, Argument, Kind, Refused
from lakehouse_engine.sql.procedures.procedure import FLAG, LONG, PATH, TEXT, Rows, Values, procedure
from lakehouse_engine.table_services import TableServices

_DRY_RUN = Argument("dry_run", Kind.FLAG, False)
_CASCADE = Argument("cascade", Kind.FLAG, False)
_ACCEPT_FUTURE = Argument("accept_future", Kind.FLAG, False)
_LOST_ARCHIVE = Argument("accept_lost_archive", Kind.FLAG, False)
_OPTIONS = Argument("options", Kind.OPTIONS, {})
_RESTORE = ("cascade", "dry_run", "accept_future")
_REPAIR = ("dry_run", "accept_future", "trust_files", "accept_lost_archive")
_COMPACTION_OPS = {
    "run": "run",
    "scheduleandexecute": "schedule_and_run",
    "schedule_and_run": "schedule_and_run",
    "schedule": "schedule",
    "execute": "execute",
}
"""Hudi's words for `op`. `run` runs what is pending, or schedules and runs if nothing is; `execute` schedules nothing."""
_OF_CLEAN = {
    "clean_policy": CLEAN_POLICY.key,
    "retain_commits": CLEAN_COMMITS.key,
    "file_versions_retained": CLEAN_VERSIONS.key,
    "hours_retained": CLEAN_HOURS.key,
}
"""Option that each argument of a clean sets."""


def _create_savepoint(table: TableServices, values: Values) -> Rows:
    made = table.savepoint(
        values["commit_time"],
        name=values["name"],
        comment=values["comments"],
        user=values["user"],
        dry_run=values["dry_run"],
    )
    yield not values["dry_run"], made.instant, made.name, made.files, made.bytes


def _delete_savepoint(table: TableServices, values: Values) -> Rows:
    gone = table.delete_savepoint(values["instant_time"], dry_run=values["dry_run"])
    yield not values["dry_run"], gone.instant, gone.name


def _rollback_to_savepoint(table: TableServices, values: Values) -> Rows:
    yield _restored(table.restore(values["instant_time"], **{name: values[name] for name in _RESTORE}))


def _restore_to_instant(table: TableServices, values: Values) -> Rows:
    yield _restored(table.restore(to=values["instant_time"], **{name: values[name] for name in _RESTORE}))


def _restored(done: RestoreResult) -> tuple[object, ...]:
    gone = len(done.files_deleted), done.bytes_deleted, done.rows_taken_back
    return not done.dry_run, done.instant, done.restored_to, len(done.rolled_back), *gone, ", ".join(done.savepoints_deleted)


def _repair_table(table: TableServices, values: Values) -> Rows:
    """One row for each thing that was repaired (in a dry run: would be), or remains."""
    report = table.repair(**{name: values[name] for name in _REPAIR})
    done = "would be repaired" if report.dry_run else "repaired"
    for result, found in ((done, report.repaired), ("left", report.left)):
        yield from ((result, str(one.kind), one.what, one.message) for one in found)


def _rollback_to_instant(table: TableServices, values: Values) -> Rows:
    done = table.rollback(values["instant_time"], dry_run=values["dry_run"])
    yield not done.dry_run, done.instant, done.rolled_back, len(done.files_deleted), done.bytes_deleted, done.rows_taken_back


def _run_compaction(table: TableServices, values: Values) -> Rows:
    op = _COMPACTION_OPS.get(values["op"].lower())
    if op is None:
        raise OptionError(f"CALL run_compaction: op => {values['op']!r} is not one of run, schedule, execute, scheduleAndExecute")
    for step, instant in _steps(table, op, values["timestamp"], dry_run=values["dry_run"]):
        done = table.compact(step, instant=instant, dry_run=values["dry_run"], options=values["options"])
        if done.instant is not None or done.operations:
            yield done.instant, len(done.operations), done.state.upper(), done.rows_written, done.bytes_written


def _steps(table: TableServices, op: str, timestamp: str | None, *, dry_run: bool) -> list[tuple[str, str | None]]:
    """Calls `compact` for each compaction, oldest first. In a dry run, which leaves pending plans, the last call only plans."""
    if timestamp is not None:
        return [("run", timestamp)]
    if op == "schedule":
        return [("schedule", None)]
    pending: list[tuple[str, str | None]] = [("run", one.requested_time) for one in pending_plans(table.state, Action.COMPACTION)]
    if op == "execute":
        return pending or [("run", None)]
    last = "schedule" if dry_run and pending else "schedule_and_run"
    return pending if op == "run" and pending else [*pending, (last, None)]


def _run_clean(table: TableServices, values: Values) -> Rows:
    arguments = {key: values[name] for name, key in _OF_CLEAN.items() if values[name] is not None}
    options = layered(values["options"], arguments)
    try:
        policy = clean_policy_of(options, {key: name for name, key in _OF_CLEAN.items() if key in arguments})
    except OptionError as error:
        raise OptionError(f"CALL run_clean: {error}") from error
    if policy:
        options[CLEAN_POLICY.key] = policy
    done = table.clean(dry_run=values["dry_run"], options=options)
    yield done.instant, len(done.files_deleted), done.earliest_retained, done.policy, done.bytes_deleted, "; ".join(done.kept)


def _archive_commits(table: TableServices, values: Values) -> Rows:
    retained = values["retain_commits"]
    done = table.archive(
        min_commits=values["min_commits"],
        max_commits=values["max_commits"],
        dry_run=values["dry_run"],
        options={} if retained is None else {CLEAN_COMMITS.key: retained},
    )
    yield 0, len(done.archived), done.archived[-1] if done.archived else None, "; ".join(done.kept)


_RESTORED = {
    "restored_to": TEXT,
    "instants_rolled_back": LONG,
    "files_deleted": LONG,
    "bytes_deleted": LONG,
    "rows_taken_back": LONG,
    "savepoints_deleted": TEXT,
}
_LOCKED = Refused("skip_locking", "a clean always takes the table's lock")
_INLINE = Refused("schedule_in_line", "a clean is planned and carried out in one call")
_TRIGGER = Refused("trigger_strategy", "a call cleans at once; hoodie.clean.trigger.max.commits is for cleans after writes")
_METADATA = Refused("enable_metadata", "whether a table has a metadata table its properties say (hoodie.metadata.enable)")

SERVICES = (
    procedure(
        "create_savepoint",
        (
            TABLE,
            Argument("commit_time", Kind.INSTANT),
            Argument("user"),
            Argument("comments", default=""),
            Argument("name"),
            _DRY_RUN,
        ),
        {"create_savepoint_result": FLAG, "savepoint_time": TEXT, "name": TEXT, "files": LONG, "bytes": LONG},
        _create_savepoint,
    ),
    procedure(
        "delete_savepoint",
        (TABLE, Argument("instant_time", Kind.SAVEPOINT, required=True), _DRY_RUN),
        {"delete_savepoint_result": FLAG, "savepoint_time": TEXT, "name": TEXT},
        _delete_savepoint,
    ),
    procedure(
        "rollback_to_savepoint",
        (TABLE, Argument("instant_time", Kind.SAVEPOINT, "latest"), _CASCADE, _DRY_RUN, _ACCEPT_FUTURE),
        {"rollback_savepoint_result": FLAG, "start_restore_time": TEXT, **_RESTORED},
        _rollback_to_savepoint,
    ),
    procedure(
        "restore_to_instant",
        (TABLE, Argument("instant_time", Kind.INSTANT, required=True), _CASCADE, _DRY_RUN, _ACCEPT_FUTURE),
        {"restore_result": FLAG, "start_restore_time": TEXT, **_RESTORED},
        _restore_to_instant,
        refused=(PATH, _METADATA),
    ),
    procedure(
        "rollback_to_instant",
        (TABLE, Argument("instant_time", Kind.INSTANT, required=True), _DRY_RUN),
        {
            "rollback_result": FLAG,
            "start_rollback_time": TEXT,
            "rolled_back": TEXT,
            "files_deleted": LONG,
            "bytes_deleted": LONG,
            "rows_taken_back": LONG,
        },
        _rollback_to_instant,
    ),
    procedure(
        "run_compaction",
        (Argument("op", required=True), TABLE, Argument("timestamp", Kind.INSTANT), _OPTIONS, _DRY_RUN),
        {"timestamp": TEXT, "operation_size": LONG, "state": TEXT, "rows_written": LONG, "bytes_written": LONG},
        _run_compaction,
    ),
    procedure(
        "run_clean",
        (
            TABLE,
            Argument("retain_commits", Kind.COUNT),
            Argument("clean_policy"),
            Argument("hours_retained", Kind.COUNT),
            Argument("file_versions_retained", Kind.COUNT),
            _OPTIONS,
            _DRY_RUN,
        ),
        {
            "start_clean_time": TEXT,
            "total_files_deleted": LONG,
            "earliest_commit_to_retain": TEXT,
            "clean_policy": TEXT,
            "bytes_deleted": LONG,
            "kept": TEXT,
        },
        _run_clean,
        refused=(PATH, _LOCKED, _INLINE, _TRIGGER, Refused("trigger_max_commits", _TRIGGER.because)),
    ),
    procedure(
        "archive_commits",
        (
            TABLE,
            Argument("min_commits", Kind.COUNT),
            Argument("max_commits", Kind.COUNT),
            Argument("retain_commits", Kind.COUNT),
            _DRY_RUN,
        ),
        {"result": LONG, "archived": LONG, "last_archived": TEXT, "kept": TEXT},
        _archive_commits,
        refused=(PATH, _METADATA),
    ),
    procedure(
        "repair_table",
        (TABLE, _ACCEPT_FUTURE, Argument("trust_files", Kind.FLAG, False), _LOST_ARCHIVE, _DRY_RUN),
        {"result": TEXT, "disorder": TEXT, "what": TEXT, "message": TEXT},
        _repair_table,
    ),
)
