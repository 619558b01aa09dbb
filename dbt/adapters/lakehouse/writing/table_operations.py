"""One operation on one table, with its result as rows to print.

`table` is the engine's `HoodieTable`; `given` holds the user's arguments, and under `options` the model's engine options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.describe import is_merge_on_read
from dbt.adapters.lakehouse.names import did_you_mean
from lakehouse_engine import api

Rows = list[dict[str, Any]]
Operation = Callable[[Any, Mapping[str, Any]], Rows]
_COMPACTED = ("slices", "log_files", "files_created", "rows_written", "bytes_written")
CLEAN_POLICY = "hoodie.clean.policy"
RETAINED = {
    "retain_commits": ("hoodie.clean.commits.retained", "KEEP_LATEST_COMMITS"),
    "retain_versions": ("hoodie.clean.fileversions.retained", "KEEP_LATEST_FILE_VERSIONS"),
    "retain_hours": ("hoodie.clean.hours.retained", "KEEP_LATEST_BY_HOURS"),
}
"""Options that each argument of a clean sets, and the policy that reads them; other policies ignore them."""


def run_on_table(table: Any, operation: str, given: Mapping[str, Any], options: Mapping[str, str]) -> Rows:
    """Raises the engine's errors, and `DbtRuntimeError` for an unknown operation."""
    if operation not in OPERATIONS:
        raise DbtRuntimeError(f"there is no operation '{operation}'{did_you_mean(operation, OPERATIONS)}")
    return OPERATIONS[operation](table, {**given, "options": options})


def _savepoint(table: Any, given: Mapping[str, Any]) -> Rows:
    made = table.savepoint(
        _text(given, "instant"),
        name=_text(given, "name"),
        comment=str(given.get("comment") or ""),
        user=_text(given, "user"),
        dry_run=flag(given, "dry_run"),
    )
    return [_savepoint_row(made)]


def _savepoints(table: Any, given: Mapping[str, Any]) -> Rows:
    return [_savepoint_row(one) for one in table.savepoints()]


def _savepoint_row(one: Any) -> dict[str, Any]:
    made = datetime.fromtimestamp(one.created_at / 1000, timezone.utc)
    return {
        "savepoint": one.name or one.instant,
        "instant": one.instant,
        "created": f"{made:%Y-%m-%d %H:%M:%S}",
        "by": one.user,
        "comment": one.comment,
        "files": one.files,
        "bytes": one.bytes,
    }


def _delete_savepoint(table: Any, given: Mapping[str, Any]) -> Rows:
    wanted = _text(given, "savepoint")
    if wanted is None:
        raise DbtRuntimeError("delete_savepoint needs 'savepoint': a name or an instant")
    return [_savepoint_row(table.delete_savepoint(wanted, dry_run=flag(given, "dry_run")))]


def _restore(table: Any, given: Mapping[str, Any]) -> Rows:
    done = table.restore(
        _text(given, "savepoint"),
        to=_text(given, "to"),
        cascade=flag(given, "cascade"),
        accept_future=flag(given, "accept_future"),
        dry_run=flag(given, "dry_run"),
    )
    return [
        {
            "restored_to": done.restored_to,
            "savepoint": done.savepoint,
            "instant": done.instant,
            "commits_taken_back": len(done.rolled_back),
            "rows_taken_back": done.rows_taken_back,
            "files_deleted": len(done.files_deleted),
            "bytes_deleted": done.bytes_deleted,
            "savepoints_deleted": ", ".join(done.savepoints_deleted),
        }
    ]


def _rollback(table: Any, given: Mapping[str, Any]) -> Rows:
    done = table.rollback(_text(given, "instant"), dry_run=flag(given, "dry_run"))
    return [
        {
            "rolled_back": done.rolled_back,
            "action": done.action,
            "instant": done.instant,
            "rows_taken_back": done.rows_taken_back,
            "files_deleted": len(done.files_deleted),
            "bytes_deleted": done.bytes_deleted,
        }
    ]


def _compact(table: Any, given: Mapping[str, Any]) -> Rows:
    if given.get("skip_copy_on_write") and not is_merge_on_read(table):
        return [{"instant": None, "state": "copy-on-write", **dict.fromkeys(_COMPACTED, 0)}]
    done = table.compact(
        _text(given, "op") or "schedule_and_run",
        instant=_text(given, "instant"),
        dry_run=flag(given, "dry_run"),
        options=given["options"],
    )
    return [
        {
            "instant": done.instant,
            "state": done.state,
            "slices": len(done.operations),
            "log_files": done.log_files_compacted,
            "files_created": done.files_created,
            "rows_written": done.rows_written,
            "bytes_written": done.bytes_written,
        }
    ]


def _cluster(table: Any, given: Mapping[str, Any]) -> Rows:
    op, options = _text(given, "op") or "schedule_and_run", dict(given["options"])
    asked = {"order_by": _names(given, "order_by"), "layout": _text(given, "layout"), "partitions": _names(given, "partitions")}
    done = table.cluster(op, instant=_text(given, "instant"), dry_run=flag(given, "dry_run"), options=options, **asked)
    return [
        {
            "instant": done.instant,
            "state": done.state,
            "groups": len(done.groups),
            "files": done.files_planned,
            "bytes": done.bytes_read,
            "files_created": done.files_created,
            "rows_written": done.rows_written,
            "groups_left": done.groups_left,
        }
    ]


def _names(given: Mapping[str, Any], name: str) -> list[str] | None:
    """A list of names, or a text with commas between them."""
    value = given.get(name)
    if value is None or (isinstance(value, Sequence) and not isinstance(value, str)):
        return None if value is None else [str(one) for one in value]
    return [one.strip() for one in (_text(given, name) or "").split(",") if one.strip()]


def _mapping(given: Mapping[str, Any], name: str) -> dict[str, str]:
    value = given.get(name) or {}
    if not isinstance(value, Mapping):
        raise DbtRuntimeError(f"{name} is a mapping, such as {{format: yyyy-MM-dd}}, and not {value!r}")
    return {str(key): str(one) for key, one in value.items()}


def _index(table: Any, given: Mapping[str, Any]) -> Rows:
    op = _text(given, "op") or "schedule_and_run"
    asked = {"columns": _names(given, "columns"), "type": _text(given, "type"), "expression": _text(given, "expression"), "op": op}
    options = _mapping(given, "expression_options")
    flags = {name: flag(given, name) for name in ("if_not_exists", "dry_run")}
    done = table.create_index(_index_name("index", given), **asked, options=options, **flags)
    return [{"index": done.index, "instant": done.instant, "planned": ", ".join(done.planned), "built": ", ".join(done.built)}]


def _drop_index(table: Any, given: Mapping[str, Any]) -> Rows:
    done = table.drop_index(_index_name("drop_index", given), if_exists=flag(given, "if_exists"), dry_run=flag(given, "dry_run"))
    return [{"index": done.index, "dropped": ", ".join(done.dropped)}]


def _index_name(operation: str, given: Mapping[str, Any]) -> str:
    name = _text(given, "name")
    if name is None:
        raise DbtRuntimeError(f"{operation} needs 'name', that of the index, such as record_index or column_stats")
    return name


def _clean(table: Any, given: Mapping[str, Any]) -> Rows:
    done = table.clean(dry_run=flag(given, "dry_run"), options={**given["options"], **_retained(given)})
    return [
        {
            "instant": done.instant,
            "policy": done.policy,
            "earliest_retained": done.earliest_retained,
            "partitions": done.partitions,
            "files_deleted": len(done.files_deleted),
            "bytes_deleted": done.bytes_deleted,
            "kept": "; ".join(done.kept),
        }
    ]


def _retained(given: Mapping[str, Any]) -> dict[str, str]:
    """Options of what a clean keeps. Raises `DbtRuntimeError` for an argument that the policy ignores."""
    named = [key for key in RETAINED if key in given]
    policy = (_text(given, "policy") or "").upper()
    other = next((key for key in named if policy and RETAINED[key][1] != policy), None)
    if len(named) > 1 or other is not None:
        kinds = ", ".join(f"{key} ({RETAINED[key][1]})" for key in named)
        raise DbtRuntimeError(f"a clean keeps by one policy; given: {kinds}{f', and policy {policy}' if policy else ''}")
    options = {RETAINED[key][0]: str(_number(given, key)) for key in named}
    if chosen := policy or (RETAINED[named[0]][1] if named else ""):
        options[CLEAN_POLICY] = chosen
    return options


def _archive(table: Any, given: Mapping[str, Any]) -> Rows:
    least = _number(given, "min_commits", "retain_commits")
    done = table.archive(
        min_commits=least, max_commits=_number(given, "max_commits"), dry_run=flag(given, "dry_run"), options=given["options"]
    )
    return [
        {
            "archived": len(done.archived),
            "oldest": done.archived[0] if done.archived else None,
            "newest": done.archived[-1] if done.archived else None,
            "kept": "; ".join(done.kept),
        }
    ]


def _upgrade(table: Any, given: Mapping[str, Any]) -> Rows:
    return _version_rows(table.upgrade(_version(given, 9), dry_run=flag(given, "dry_run"), options=given["options"]))


def _downgrade(table: Any, given: Mapping[str, Any]) -> Rows:
    return _version_rows(table.downgrade(_version(given, 6), dry_run=flag(given, "dry_run"), options=given["options"]))


def _version(given: Mapping[str, Any], default: int) -> int:
    found = _number(given, "to")
    return default if found is None else found


def _version_rows(done: Any) -> Rows:
    """One row for each step, and for each thing that is different afterwards."""
    what = [("would be done" if done.dry_run else "done", step) for step in done.steps] + [("note", note) for note in done.notes]
    versions = {"from": done.from_version, "to": done.to_version}
    return [{**versions, "result": result, "step": step} for result, step in what or [("nothing to do", None)]]


def _history(table: Any, given: Mapping[str, Any]) -> Rows:
    return [
        {
            "instant": one.instant,
            "action": one.action,
            "state": one.state,
            "operation": one.operation,
            "inserts": one.inserts,
            "updates": one.updates,
            "deletes": one.deletes,
            "files": one.files,
            "bytes": one.bytes_written,
            "note": one.note,
        }
        for one in table.history(_number(given, "limit"))
    ]


def _writers(table: Any, given: Mapping[str, Any]) -> Rows:
    return [
        {
            "state": one.state,
            "instant": one.instant,
            "action": one.action,
            "program": one.program,
            "host": one.host,
            "pid": one.pid,
            "thread": one.thread,
            "since": one.since,
            "heartbeat_seconds": one.heartbeat_seconds,
            "waits_for": one.waits_for,
        }
        for one in table.writers()
    ]


def _table_info(table: Any, given: Mapping[str, Any]) -> Rows:
    return [{"fact": name, "value": _plain(value)} for name, value in api.describe.describe_table(table.state).items()]


def _repair(table: Any, given: Mapping[str, Any]) -> Rows:
    """One row for each thing that was repaired (in a dry run: would be), or remains."""
    names = ("dry_run", "accept_future", "trust_files", "accept_lost_archive")
    report = table.repair(**{name: flag(given, name) for name in names})
    done = "would be repaired" if report.dry_run else "repaired"
    found = [(done, one) for one in report.repaired] + [("left", one) for one in report.left]
    rows = [{"result": result, "disorder": str(one.kind), "what": one.what, "message": one.message} for result, one in found]
    return rows or [{"result": "in order", "disorder": None, "what": None, "message": None}]


_WHOLE = "whole"


def unsolved(operation: str, rows: Rows) -> list[str]:
    """Findings that make an operation a failure although it ran: a person has to act on them."""
    if operation == "verify":
        return [row["result"] for row in rows if row["result"] != _WHOLE]
    if operation != "repair":
        return []
    return [f"{row['what']}: {row['message']}" for row in rows if row["result"] == "left" and api.health.is_unsolved(row["disorder"])]


def _verify(table: Any, given: Mapping[str, Any]) -> Rows:
    """One row for each thing that is wrong, with the way out; `unsolved` makes them failures."""
    instant, wrong = api.health.findings(table, quick=flag(given, "quick"))
    return [{"instant": instant, "result": one} for one in wrong or [_WHOLE]]


OPERATIONS: dict[str, Operation] = {
    "savepoint": _savepoint,
    "savepoints": _savepoints,
    "delete_savepoint": _delete_savepoint,
    "restore": _restore,
    "rollback": _rollback,
    "compact": _compact,
    "cluster": _cluster,
    "index": _index,
    "drop_index": _drop_index,
    "clean": _clean,
    "archive": _archive,
    "upgrade": _upgrade,
    "downgrade": _downgrade,
    "history": _history,
    "writers": _writers,
    "table_info": _table_info,
    "verify": _verify,
    "repair": _repair,
}
"""Every run-operation on tables, by the name that users type."""


def _text(given: Mapping[str, Any], name: str) -> str | None:
    """An instant, which YAML turns into a number, as text. Raises `DbtRuntimeError` for an empty text, such as an unset shell variable."""
    value = given.get(name)
    if value == "":
        raise DbtRuntimeError(f"{name} is empty; leave it out, or say which")
    return None if value is None else str(value)


def flag(given: Mapping[str, Any], name: str) -> bool:
    """A boolean argument, also as text. Raises `DbtRuntimeError` for anything else."""
    value = given.get(name, False)
    if isinstance(value, bool):
        return value
    if str(value).lower() not in ("true", "false"):
        raise DbtRuntimeError(f"{name} is true or false, not '{value}'")
    return str(value).lower() == "true"


def _number(given: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        if name in given:
            value = given[name]
            if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]{1,18}", str(value).strip()):
                raise DbtRuntimeError(f"{name} is a whole number, not '{value}'")
            return int(value)
    return None


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
