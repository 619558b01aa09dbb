"""Commands that keep a table in shape, and see to what a dead process left."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakehouse_engine import HoodieTable, Lakehouse, repair_table
from lakehouse_engine.cli.main import COMMANDS, cli
from lakehouse_engine.cli.terminal import progress
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import ExternalIndexError, OptionError, PropertiesError, TableNotFoundError, TimelineError
from lakehouse_engine.repair import DisorderKind
from lakehouse_engine.storage.faults import FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.view.protected import protected_files
from tests.support.hbase import fake_hbase
from tests.support.untouched import files_below
from tests.unit.cli.conftest import SCHEMA, orders

NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}


@pytest.fixture(params=["cow", "mor"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> HoodieTable:
    lakehouse = Lakehouse(str(tmp_path / "lake"), options=NO_SERVICES)
    made = lakehouse.create_table(
        "analytics.orders", schema=SCHEMA, record_key=["order_id"], partition_by=["day"], table_type=request.param
    )
    made.upsert(orders(range(10), "new"))
    made.upsert(orders(range(10), "paid"))
    return made


def is_mor(table: HoodieTable) -> bool:
    return str(table.config.table_type) == "MERGE_ON_READ"


def run(table: HoodieTable, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--warehouse", str(Path(table.path).parents[1]), *arguments])


def answer(table: HoodieTable, *arguments: str) -> Any:
    result = run(table, *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def content(table: HoodieTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_arrow(columns=["order_id", "status"]).to_pylist()
    return sorted(rows, key=lambda row: int(row["order_id"]))


def die_committing(table: HoodieTable) -> str:
    """An upsert whose process dies when all is written but the commit; its instant."""
    copy = f"{table.path}-copy"
    shutil.copytree(table.path, copy)
    counting = FaultyStorage(LocalStorage(copy))
    HoodieTable(counting, options=NO_SERVICES).upsert(orders(range(5), "lost"))  # type: ignore[arg-type]
    shutil.rmtree(copy)
    call = next(number for number, made in enumerate(counting.mutations, 1) if made.endswith(("commit", "deltacommit")))
    known = {entry.instant for entry in table.history()}
    dying = FaultyStorage(LocalStorage(table.path), call)
    with pytest.raises(SimulatedCrash):
        HoodieTable(dying, options=NO_SERVICES).upsert(orders(range(5), "lost"))  # type: ignore[arg-type]
    (instant,) = {entry.instant for entry in table.history()} - known
    return instant


# compaction, cleaning, archiving


def test_a_compaction_in_two_steps_and_in_one(table: HoodieTable) -> None:
    if not is_mor(table):
        refused = run(table, "compact", "analytics.orders")
        assert (refused.exit_code, "merge-on-read" in refused.stderr) == (3, True)
        return
    before = content(table)
    planned = answer(table, "compact", "analytics.orders", "--op", "schedule")
    assert answer(table, "info", "analytics.orders")["pending_compactions"] == [planned["instant"]]
    done = answer(table, "compact", "analytics.orders", "--op", "run", "--instant", planned["instant"])
    assert (done["instant"], done["state"], done["log_files_compacted"]) == (planned["instant"], "completed", 2)
    assert content(table) == before
    table.upsert(orders(range(10), "sent"))
    assert answer(table, "compact", "analytics.orders")["files_created"] == 2
    assert {row["status"] for row in content(table)} == {"sent"}


@pytest.mark.parametrize("arguments", [[], ["--op", "schedule"], ["--op", "run"], ["--log"], ["--dry-run"]])
def test_a_compaction_without_logs_is_refused_at_once(tmp_path: Path, arguments: list[str]) -> None:
    table = Lakehouse(str(tmp_path)).create_table("analytics.whole", schema=SCHEMA, record_key=["order_id"], properties=NO_SERVICES)
    table.upsert(orders(range(3), "new"))
    die_committing(table)
    before = files_below(Path(table.path))
    with TableLock(LocalStorage(table.path), 0):
        result = run(table, "compact", "analytics.whole", "--option", "hoodie.write.lock.wait_time_ms=100", *arguments)
    assert (result.exit_code, "only merge-on-read tables" in result.stderr) == (3, True)
    assert files_below(Path(table.path)) == before


def test_log_blocks_are_merged(table: HoodieTable) -> None:
    if not is_mor(table):
        pytest.skip("copy-on-write tables have no logs")
    for number in range(6):
        table.upsert(orders(range(10), f"step {number}"))
    done = answer(table, "compact", "analytics.orders", "--log")
    assert (done["operation"], done["state"]) == ("LOG_COMPACT", "completed")
    assert {row["status"] for row in content(table)} == {"step 5"}


def test_a_clean_says_what_it_deleted_and_keeps_a_savepoint(table: HoodieTable) -> None:
    table.savepoint(name="start")
    for status in ("sent", "back", "gone"):
        table.insert_overwrite_table(orders(range(10), status))
    wanted = answer(table, "clean", "analytics.orders", "--retain-commits", "1", "--dry-run")["files_deleted"]
    cleaned = answer(table, "clean", "analytics.orders", "--retain-commits", "1")
    assert (cleaned["files_deleted"], any("savepoint" in reason for reason in cleaned["kept"])) == (wanted, True)
    assert wanted
    assert not any((Path(table.path) / path).exists() for path in wanted)
    assert {row["status"] for row in content(table)} == {"gone"}
    assert {row["status"] for row in table.to_arrow(as_of="start").to_pylist()} == {"paid"}


def test_archived_instants_leave_the_timeline_and_are_shown_on_request(table: HoodieTable) -> None:
    for status in ("sent", "back", "gone"):
        table.insert_overwrite_table(orders(range(10), status))
    table.clean(retain_commits=1)
    everything = [entry.instant for entry in table.history()]
    options = ["--min-commits", "2", "--option", "hoodie.clean.commits.retained=1"]
    if is_mor(table):
        stopped = answer(table, "archive", "analytics.orders", *options)
        assert (stopped["archived"], "compaction" in stopped["kept"][0]) == ([], True)
        return
    archived = answer(table, "archive", "analytics.orders", *options)["archived"]
    assert archived
    assert {row["instant"] for row in answer(table, "timeline", "analytics.orders")} == set(everything) - set(archived)
    shown = answer(table, "timeline", "analytics.orders", "--archived")
    assert [row["instant"] for row in shown if row["archived"]] == sorted(archived, reverse=True)


@pytest.mark.parametrize("command", ["clean", "archive", "compact", "repair", "verify", "timeline", "history"])
def test_every_command_prints_text_for_people_too(table: HoodieTable, command: str) -> None:
    result = run(table, command, "analytics.orders")
    assert result.exit_code == (3 if command == "compact" and not is_mor(table) else 0), result.stderr
    assert result.stdout.strip() or result.stderr.strip()


# repair


def test_a_table_in_order_has_nothing_to_repair(table: HoodieTable) -> None:
    report = answer(table, "repair", "analytics.orders")
    assert (report["repaired"], report["left"]) == ([], [])


def test_a_dead_write_is_told_of_then_taken_back(table: HoodieTable) -> None:
    before = content(table)
    instant = die_committing(table)
    stored = set(Path(table.path).rglob("*"))
    told = answer(table, "repair", "analytics.orders", "--dry-run")
    assert [(one["kind"], one["what"]) for one in told["repaired"]] == [(DisorderKind.DEAD_WRITE, instant)]
    assert set(Path(table.path).rglob("*")) == stored
    done = answer(table, "repair", "analytics.orders")
    assert [(one["kind"], one["what"]) for one in done["repaired"]] == [(DisorderKind.DEAD_WRITE, instant)]
    assert answer(table, "repair", "analytics.orders", "--dry-run")["repaired"] == []
    assert not any(instant in path.name and path.suffix == ".parquet" for path in Path(table.path).rglob("*"))
    assert content(table) == before


def test_what_waits_and_what_nobody_names_is_left_and_told(table: HoodieTable) -> None:
    stray = Path(table.path) / "day=2026-01-01" / "0b6e6b1c-0000-4000-8000-000000000000-0_0-1-1_29990101000000000.parquet"
    stray.write_bytes(b"nobody's")
    expected = {(DisorderKind.ORPHAN.value, f"day=2026-01-01/{stray.name}")}
    if is_mor(table):
        expected.add((DisorderKind.PENDING_SERVICE.value, str(table.compact("schedule").instant)))
    report = answer(table, "repair", "analytics.orders")
    assert {(one["kind"], one["what"]) for one in report["left"]} == expected
    assert stray.exists()


def test_a_repair_that_leaves_damage_ends_with_exit_code_1_and_one_that_trusts_files_leads_out(table: HoodieTable) -> None:
    before = content(table)
    commit = next(path for path in Path(table.path, ".hoodie").iterdir() if path.suffix in (".commit", ".deltacommit"))
    commit.write_bytes(b"")
    for arguments in ((), ("--dry-run",)):
        failed = run(table, "repair", "analytics.orders", *arguments, "--json")
        assert failed.exit_code == 1
        report = json.loads(failed.stdout)
        assert (report["ok"], report["repaired"]) == (False, [])
        assert [one["what"] for one in report["left"]] == [f".hoodie/{commit.name}"]
    assert "left" in run(table, "repair", "analytics.orders").stdout
    assert answer(table, "repair", "analytics.orders", "--trust-files")["ok"]
    assert content(table) == before
    assert run(table, "verify", "analytics.orders").exit_code == 0


def test_markers_of_a_finished_write_are_removed(table: HoodieTable) -> None:
    folder = Path(table.path) / ".hoodie" / ".temp" / table.history()[0].instant
    folder.mkdir(parents=True)
    (folder / "staged.arrow").write_bytes(b"rows")
    report = answer(table, "repair", "analytics.orders")
    assert [one["kind"] for one in report["repaired"]] == [DisorderKind.LEFTOVER_MARKERS]
    assert not folder.exists()


def left_by_a_killed_process(folder: Path, age_s: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".~lakehouse-{age_s:032x}.tmp"
    path.write_bytes(b"half a commit")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_temporary_files_of_killed_processes_go_with_the_next_write_and_with_a_repair(table: HoodieTable) -> None:
    root, hours = Path(table.path), 2 * 3600
    dead, young = left_by_a_killed_process(root / ".hoodie", hours), left_by_a_killed_process(root / ".hoodie", 5)
    elsewhere = [left_by_a_killed_process(root / folder, hours) for folder in (".hoodie/.locks", ".hoodie/archived", "day=2026-01-01")]
    table.upsert(orders(range(2), "sent"))
    assert (dead.exists(), young.exists()) == (False, True)
    told = answer(table, "repair", "analytics.orders", "--dry-run")["repaired"]
    assert {(one["kind"], one["what"]) for one in told} == {("temporary_file", str(path.relative_to(root))) for path in elsewhere}
    assert all(path.exists() for path in elsewhere)
    assert len(answer(table, "repair", "analytics.orders")["repaired"]) == len(elsewhere)
    assert (young.exists(), any(path.exists() for path in elsewhere)) == (True, False)


def test_a_dry_run_does_not_call_a_writer_dead_that_is_at_work(table: HoodieTable) -> None:
    instant = die_committing(table)
    with TableLock(table.storage):
        told = answer(table, "repair", "analytics.orders", "--dry-run")
    assert told["repaired"] == []
    ((kind, what, message),) = [(one["kind"], one["what"], one["message"]) for one in told["left"]]
    assert (kind, what) == ("at_work", instant)
    assert f"process {os.getpid()} on" in message
    assert [one["kind"] for one in answer(table, "repair", "analytics.orders", "--dry-run")["repaired"]] == ["dead_write"]


def test_a_dry_run_tells_of_a_compaction_that_is_being_run_and_of_a_hudi_writer_that_lives(table: HoodieTable) -> None:
    instant = die_committing(table)
    beat = Path(table.path) / ".hoodie" / ".heartbeat" / instant
    beat.parent.mkdir(exist_ok=True)
    beat.write_bytes(b"")
    (left,) = answer(table, "repair", "analytics.orders", "--dry-run")["left"]
    assert (left["kind"], left["what"], "heartbeat" in left["message"]) == ("at_work", instant, True)
    beat.unlink()
    if is_mor(table):
        planned = table.compact("schedule").instant
        with TableLock(table.storage, file=f".hoodie/.locks/compaction-{planned}.lock"):
            (left,) = answer(table, "repair", "analytics.orders", "--dry-run")["left"]
        assert (left["kind"], left["what"], f"process {os.getpid()} on" in left["message"]) == ("at_work", planned, True)


# verify


def test_files_of_earlier_commits_are_verified_until_they_are_cleaned(table: HoodieTable) -> None:
    table.insert_overwrite_table(orders(range(10), "sent"))
    report = verify(table.state)
    assert report.ok
    assert report.retained_files > report.files
    old = next(path for path in sorted(Path(table.path).rglob("*.parquet")) if table.history()[0].instant not in path.name)
    moved = old.rename(old.with_suffix(".away"))
    (finding,) = verify(table.state).findings
    assert (finding.kind, finding.path.endswith(old.name)) == (FindingKind.MISSING_FILE, True)
    moved.rename(old)
    table.clean(retain_commits=1)
    assert verify(table.state).ok


def test_a_lost_file_of_a_savepoint_is_found(table: HoodieTable) -> None:
    table.savepoint(name="start")
    for status in ("sent", "back", "gone"):
        table.insert_overwrite_table(orders(range(10), status))
    table.clean(retain_commits=1)
    assert verify(table.state).ok
    lost = min(protected_files(table.state))
    (Path(table.path) / lost).unlink()
    assert [(one.kind, one.path, "savepoint" in one.message) for one in verify(table.state).findings] == [
        (FindingKind.MISSING_FILE, lost, True)
    ]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def drop(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(("damage", "kind"), [(cut, FindingKind.WRONG_SIZE), (drop, FindingKind.MISSING_FILE)])
def test_damage_of_a_log_file_is_found(table: HoodieTable, damage: Callable[[Path], None], kind: FindingKind) -> None:
    if not is_mor(table):
        pytest.skip("copy-on-write tables have no logs")
    log = min(Path(table.path).rglob(".*.log.*"))
    damage(log)
    result = run(table, "verify", "analytics.orders")
    assert (result.exit_code, str(kind) in result.stdout, log.name in result.stdout) == (1, True, True)


def test_keys_in_logs_count(table: HoodieTable) -> None:
    report = verify(table.state)
    assert (report.ok, report.rows, report.skipped) == (True, 10, ())
    table.bulk_insert(orders(range(3), "again"))
    assert {one.kind for one in verify(table.state).findings} == {FindingKind.DUPLICATE_KEY}


# the program itself


def test_the_line_of_a_command_in_the_overview_is_that_of_its_own_help() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).stdout
    for name in COMMANDS:
        own = CliRunner().invoke(cli, [name, "--help"])
        assert own.exit_code == 0
        assert f"  {name} " in shown
    assert CliRunner().invoke(cli, ["savepoint", "create", "--help"]).exit_code == 0


def test_progress_counts_tasks_on_a_terminal_and_is_silent_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = list(range(20))
    runner = progress.ProgressRunner(4)
    assert runner.run(abs, tasks, name="compact") == LocalRunner(4).run(abs, tasks, name="compact") == tasks
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress.working("compacting"):
        assert runner.run(abs, tasks, name="compact") == tasks
    shown = capsys.readouterr()
    assert (shown.out, "compact" in shown.err) == ("", True)


# a table that cannot be opened


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"recordkey.fields=order_id", b"recordkey.fields=order_ie"))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [drop, cut, empty, flip])
def test_damaged_properties_are_put_back_as_they_were_written_last(table: HoodieTable, damage: Callable[[Path], None]) -> None:
    before, properties = content(table), Path(table.path) / ".hoodie" / "hoodie.properties"
    whole = properties.read_bytes()
    damage(properties)
    with pytest.raises((PropertiesError, TableNotFoundError), match="`repair` puts it back"):
        HoodieTable.open(table.path)
    told = answer(table, "repair", "analytics.orders", "--dry-run")["repaired"]
    assert [(one["kind"], one["what"]) for one in told] == [("damaged_file", ".hoodie/hoodie.properties")]
    assert not properties.exists() or properties.read_bytes() != whole
    if damage is flip:
        assert "hoodie.table.recordkey.fields=order_ie" in told[0]["message"]
    answer(table, "repair", "analytics.orders")
    assert properties.read_bytes() == whole
    assert content(table) == before


def test_properties_of_others_are_not_guessed(table: HoodieTable) -> None:
    properties, copy = Path(table.path) / ".hoodie" / "hoodie.properties", Path(table.path) / ".hoodie" / ".aux" / "hoodie.properties"
    copy.unlink()
    cut(properties)
    refused = run(table, "repair", "analytics.orders")
    assert (refused.exit_code, "hoodie.properties" in refused.stderr) == (1, True)


def test_instants_of_the_future_are_told_and_accepted_on_request(table: HoodieTable) -> None:
    table.upsert(orders(range(3), "lost"))
    table.rollback()
    newest, future = table.history()[0], "29990101000000000"
    assert newest.action == "rollback"
    for path in sorted((Path(table.path) / ".hoodie").glob(f"{newest.instant}.*")):
        path.rename(path.with_name(path.name.replace(newest.instant, future)))
    with pytest.raises(TimelineError, match="accept-future"):
        table.delete(orders(range(1), "x").select(["order_id", "day"]))
    failed = run(table, "repair", "analytics.orders", "--json")
    left = json.loads(failed.stdout)["left"]
    assert (failed.exit_code, [(one["kind"], one["what"]) for one in left]) == (1, [("future_instant", future)])
    done = answer(table, "repair", "analytics.orders", "--accept-future")
    assert [(one["kind"], one["what"]) for one in done["repaired"]] == [("future_instant", future)]
    assert answer(table, "repair", "analytics.orders")["left"] == []
    table.delete(orders(range(1), "x").select(["order_id", "day"]))
    assert table.history()[0].instant > future


def test_a_table_that_cannot_be_opened_is_repaired_by_its_path(table: HoodieTable) -> None:
    properties = Path(table.path) / ".hoodie" / "hoodie.properties"
    whole = content(table)
    properties.write_bytes(b"torn")
    with pytest.raises(PropertiesError, match="repair"):
        HoodieTable.open(table.path)
    assert [one.what for one in repair_table(table.path, dry_run=True).repaired] == [".hoodie/hoodie.properties"]
    assert properties.read_bytes() == b"torn"
    assert [one.what for one in repair_table(table.path).repaired] == [".hoodie/hoodie.properties"]
    assert content(HoodieTable.open(table.path)) == whole
    with pytest.raises(OptionError, match="dry_run"):
        repair_table(table.path, dry_run="no")  # type: ignore[arg-type]


def test_an_hbase_index_is_put_from_the_files(table: HoodieTable) -> None:
    where = ("--with", "hoodie.index.hbase.table=keys", "--with", "lakehouse.index.hbase.thrift.host=h")
    limit = ("--with", "hoodie.index.hbase.max.qps.per.region.server=0")
    with fake_hbase() as server:
        assert answer(table, "index", "rebuild", "analytics.orders", *where, *limit) == {"hbase_table": "keys", "entries": 10}
        assert len(server.entries("keys")) == 10
        refused = run(table, "index", "rebuild", "analytics.orders", "--with", "hoodie.clean.automatic=false")
        assert (refused.exit_code, "is no option of an HBASE index" in refused.stderr) == (2, True)
        HoodieTable.open(table.path).upsert(orders(range(5, 15), "sent"))
        server.is_down = True
        failed = run(table, "index", "rebuild", "analytics.orders")
        assert (failed.exit_code, "ExternalIndexError" in failed.stderr) == (1, True)
        with pytest.raises(ExternalIndexError):
            HoodieTable.open(table.path).upsert(orders(range(20), "lost"))
        lakehouse = Lakehouse(str(Path(table.path).parents[1]))
        lakehouse.clone("analytics.orders", "analytics.copy")
        lakehouse.table("analytics.copy").upsert(orders(range(20), "cloned"))  # without HBase
        assert lakehouse.table("analytics.copy").to_arrow().num_rows == 20
    assert [row["status"] for row in content(table)] == ["paid"] * 5 + ["sent"] * 10
