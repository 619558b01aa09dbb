"""Commands that keep a table and bring it back, on both types of tables."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.cli.terminal import confirm
from lakehouse_engine.timeline.lock import TableLock
from tests.unit.cli.conftest import SCHEMA, orders

FAR_AWAY = "29990101000000000"


@pytest.fixture(params=["cow", "mor"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HoodieTable:
    lakehouse = Lakehouse(str(tmp_path / "lake"))
    made = lakehouse.create_table(
        "analytics.orders", schema=SCHEMA, record_key=["order_id"], partition_by=["day"], table_type=request.param
    )
    made.upsert(orders(range(10), "new"))
    return made


def run(table: HoodieTable, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["--warehouse", str(Path(table.path).parents[1]), *arguments], input=text)


def answer(table: HoodieTable, *arguments: str) -> Any:
    result = run(table, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def files(table: HoodieTable) -> dict[str, bytes]:
    found = (path for path in Path(table.path).rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path): path.read_bytes() for path in found}


def statuses(table: HoodieTable) -> list[str]:
    rows = sorted(table.to_arrow(columns=["order_id", "status"]).to_pylist(), key=lambda row: row["order_id"])
    return [row["status"] for row in rows]


def test_a_table_is_broken_and_brought_back_by_name(table: HoodieTable) -> None:
    made = answer(table, "savepoint", "create", "analytics.orders", "--name", "monday", "--comment", "before the import")
    assert (made["name"], made["comment"], made["dry_run"]) == ("monday", "before the import", False)
    table.upsert(orders(range(10), "broken"))
    restored = answer(table, "restore", "analytics.orders", "--savepoint", "monday", "--yes")
    assert (restored["savepoint"], restored["restored_to"], len(restored["rolled_back"])) == ("monday", made["instant"], 1)
    assert statuses(table) == ["new"] * 10
    assert [row["name"] for row in answer(table, "savepoint", "list", "analytics.orders")] == ["monday"]


def test_a_commit_without_a_savepoint_is_gone_back_to(table: HoodieTable) -> None:
    first = table.history()[0].instant
    table.upsert(orders(range(5), "paid"))
    assert answer(table, "restore", "analytics.orders", "--to", first, "-y")["restored_to"] == first
    assert statuses(table) == ["new"] * 10


def test_the_newest_commit_is_rolled_back(table: HoodieTable) -> None:
    last = table.upsert(orders(range(5), "paid")).instant
    assert answer(table, "rollback", "analytics.orders", "--yes")["rolled_back"] == last
    assert statuses(table) == ["new"] * 10


def test_a_read_finds_a_savepoint_by_its_name_and_commits_by_counting_back(table: HoodieTable) -> None:
    run(table, "savepoint", "create", "analytics.orders", "--name", "monday")
    table.upsert(orders(range(10), "paid"))
    table.upsert(orders(range(10), "sent"))
    for moment, status in (("monday", "new"), ("latest", "new"), ("-2", "new"), ("-1", "paid"), ("-0", "sent")):
        rows = answer(table, "read", "analytics.orders", f"--as-of={moment}", "--columns", "status")
        assert {row["status"] for row in rows} == {status}, moment
    result = run(table, "read", "analytics.orders", "--as-of", "tuesday")
    assert (result.exit_code, "'monday'" in result.stderr) == (2, True)
    assert run(table, "read", "analytics.orders", "--as-of=-3").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["savepoint", "create", "analytics.orders", "--name", "more", "--dry-run"],
        ["restore", "analytics.orders", "--savepoint", "monday", "--dry-run"],
        ["rollback", "analytics.orders", "--dry-run"],
        ["clean", "analytics.orders", "--retain-commits", "1", "--dry-run"],
        ["archive", "analytics.orders", "--min-commits", "2", "--option", "hoodie.clean.commits.retained=1", "--dry-run"],
        ["repair", "analytics.orders", "--dry-run"],
    ],
)
def test_a_dry_run_changes_no_file(table: HoodieTable, arguments: list[str]) -> None:
    table.savepoint(name="monday")
    for status in ("paid", "sent", "back"):
        table.upsert(orders(range(10), status))
    before = files(table)
    assert run(table, *arguments).exit_code == 0
    assert files(table) == before
    assert answer(table, *arguments)["dry_run"] is True
    assert files(table) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["restore", "analytics.orders", "--savepoint", "monday"],
        ["rollback", "analytics.orders"],
        ["savepoint", "delete", "analytics.orders", "monday"],
    ],
)
def test_what_takes_back_is_refused_without_yes_where_nobody_can_be_asked(table: HoodieTable, arguments: list[str]) -> None:
    table.savepoint(name="monday")
    table.upsert(orders(range(3), "paid"))
    before = files(table)
    result = run(table, *arguments)
    assert (result.exit_code, "--yes" in result.stderr) == (3, True)
    assert files(table) == before


def test_the_newest_savepoint_is_deleted_by_that_word(table: HoodieTable) -> None:
    table.savepoint(name="monday")
    assert answer(table, "savepoint", "delete", "analytics.orders", "latest", "--dry-run")["name"] == "monday"
    assert [one.name for one in table.savepoints()] == ["monday"]
    assert answer(table, "savepoint", "delete", "analytics.orders", "latest", "--yes")["name"] == "monday"
    assert table.savepoints() == []


@pytest.mark.parametrize(("reply", "code", "status"), [("y\n", 0, "new"), ("n\n", 3, "paid"), ("\n", 3, "paid")])
def test_at_a_terminal_the_answer_decides(
    table: HoodieTable, monkeypatch: pytest.MonkeyPatch, reply: str, code: int, status: str
) -> None:
    monkeypatch.setattr(confirm, "interactive", lambda: True)
    table.upsert(orders(range(10), "paid"))
    result = run(table, "rollback", "analytics.orders", text=reply)
    assert result.exit_code == code
    assert "10 rows" in result.stderr
    assert statuses(table) == [status] * 10


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["restore", "analytics.orders", "--savepoint", "tuesday", "--yes"], 3, "monday"),
        (["restore", "analytics.orders", "--to", FAR_AWAY, "--yes"], 3, FAR_AWAY),
        (["restore", "analytics.orders", "--yes"], 2, "--savepoint and --to"),
        (["restore", "analytics.orders", "--savepoint", "monday", "--to", FAR_AWAY, "--yes"], 2, "--savepoint and --to"),
        (["restore", "analytics.orders", "--to", "20200101000000000", "--yes"], 3, "no completed write"),
        (["restore", "analytics.orders", "--to", "../../etc", "--yes"], 2, "etc"),
        (["rollback", "analytics.orders", "--instant", "yesterday", "--yes"], 2, "'yesterday' is no instant"),
        (["compact", "analytics.orders", "--op", "run", "--instant", "-1"], 2, "'-1' is no instant"),
        (["cluster", "analytics.orders", "--op", "run", "--instant", "2026-01-01"], 2, "is no instant"),
        (["savepoint", "create", "analytics.orders", "--instant", "latest"], 2, "is no instant"),
        (["rollback", "analytics.orders", "--instant", FAR_AWAY, "--yes"], 3, FAR_AWAY),
        (["savepoint", "create", "analytics.orders", "--instant", FAR_AWAY], 3, FAR_AWAY),
        (["savepoint", "create", "analytics.orders", "--name", "20260101000000000"], 3, "name"),
        (["savepoint", "create", "analytics.orders", "--name", "a\x1b[2J"], 3, "cannot be the name"),
        (["savepoint", "create", "analytics.orders", "--comment", "a\x00b"], 3, "cannot be the comment"),
        (["savepoint", "create", "analytics.orders", "--user", "a\nb"], 3, "cannot be the user"),
        (["savepoint", "delete", "analytics.orders", "tuesday", "--yes"], 3, "monday"),
        (["savepoint", "list", "analytics.nothing"], 1, "analytics.nothing"),
        (["savepoint", "create"], 2, "TABLE"),
        (["savepoint", "describe", "analytics.orders"], 2, "No such command"),
        (["clean", "analytics.orders", "--retain-commits", "0"], 2, "retain-commits"),
        (["clean", "analytics.orders", "--option", "hoodie.clean.commits.retaine=1"], 2, "hoodie.clean.commits.retained"),
        (["clean", "analytics.orders", "--option", "policy"], 2, "KEY=VALUE"),
        (["compact", "analytics.orders", "--op", "later"], 2, "schedule_and_run"),
        (["archive", "analytics.orders", "--min-commits", "1"], 2, "hoodie.clean.commits.retained"),
    ],
)
def test_a_refusal_is_an_exit_code_a_reason_and_no_change(table: HoodieTable, arguments: list[str], code: int, says: str) -> None:
    table.savepoint(name="monday")
    table.upsert(orders(range(3), "paid"))
    before = files(table)
    result = run(table, *arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert says in result.stderr
    assert files(table) == before


def test_a_restore_past_a_later_savepoint_says_so_and_needs_cascade(table: HoodieTable) -> None:
    first = table.history()[0].instant
    table.upsert(orders(range(3), "paid"))
    table.savepoint(name="later")
    refused = run(table, "restore", "analytics.orders", "--to", first, "--yes")
    assert (refused.exit_code, "later" in refused.stderr) == (3, True)
    assert len(answer(table, "restore", "analytics.orders", "--to", first, "--cascade", "--yes")["savepoints_deleted"]) == 1
    assert answer(table, "savepoint", "list", "analytics.orders") == []


def test_the_plan_of_a_restore_lists_instants_and_files(table: HoodieTable) -> None:
    table.savepoint(name="monday")
    instant = table.upsert(orders(range(3), "paid")).instant
    shown = run(table, "restore", "analytics.orders", "--savepoint", "latest", "--dry-run").stdout
    assert instant is not None
    assert instant in shown
    assert "files deleted:" in shown
    assert "nothing was changed" in shown


def test_info_and_timeline_tell_of_savepoints(table: HoodieTable) -> None:
    made = table.savepoint(name="monday", comment="why", user="ann")
    assert answer(table, "info", "analytics.orders")["savepoints"] == [f"monday ({made.instant})"]
    notes = {row["action"]: row["note"] for row in answer(table, "timeline", "analytics.orders")}
    assert "by ann" in notes["savepoint"]
    assert any("savepointed" in str(note) for note in notes.values())
    assert answer(table, "history", "analytics.orders") == answer(table, "timeline", "analytics.orders")


def test_what_there_is_not_is_no_null_for_people(table: HoodieTable) -> None:
    table.savepoint()
    for command in (["savepoint", "list"], ["timeline"], ["restore", "--savepoint", "latest", "--dry-run"], ["clean", "--dry-run"]):
        name, *options = command
        inner = options[:1] if name == "savepoint" else []
        result = run(table, name, *inner, "analytics.orders", *options[len(inner) :])
        assert result.exit_code == 0, result.stderr
        assert "null" not in result.stdout.lower()
    assert answer(table, "savepoint", "list", "analytics.orders")[0]["name"] is None


def test_a_refused_rollback_names_the_instant_alone(table: HoodieTable) -> None:
    kept = table.savepoint(name="monday").instant
    error = json.loads(run(table, "rollback", "analytics.orders", "--yes", "--json").stderr)
    assert error["context"]["instant"] == kept


@pytest.mark.parametrize(
    "arguments",
    [
        ["savepoint", "create", "analytics.orders"],
        ["savepoint", "delete", "analytics.orders", "monday", "--yes"],
        ["restore", "analytics.orders", "--savepoint", "monday", "--yes"],
        ["rollback", "analytics.orders", "--yes"],
        ["clean", "analytics.orders"],
        ["archive", "analytics.orders"],
    ],
)
def test_a_command_waits_for_another_writer_as_long_as_it_is_told(table: HoodieTable, arguments: list[str]) -> None:
    table.savepoint(name="monday")
    table.upsert(orders(range(3), "paid"))
    before = files(table)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with TableLock(table.storage):
            held.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(60)
        result = run(table, *arguments, "--option", "hoodie.write.lock.wait_time_ms=20")
    finally:
        done.set()
        holder.join()
    assert (result.exit_code, result.stdout) == (3, "")
    assert "LockTimeoutError: the table is locked by" in result.stderr
    assert files(table) == before
