"""`upgrade` and `downgrade` on every surface: what they say before, what they refuse, and versions that cannot be opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine import HoodieTable, Lakehouse, upgrade_table
from lakehouse_engine.cli.main import cli
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import (
    CommitConflictError,
    CorruptInstantError,
    LakehouseError,
    LockTimeoutError,
    OptionError,
    UnsupportedTableVersionError,
    VersionChangeError,
)
from lakehouse_engine.format.properties import parse_properties, render_properties
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.registry import prepare
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.other_layout import MARK
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
PROPERTIES = ".hoodie/hoodie.properties"


def rows(*ids: int, ts: int = 1) -> pa.Table:
    return pa.table({"id": ids, "day": ["x"] * len(ids), "ts": [ts] * len(ids), "v": [f"v{one}" for one in ids]}, schema=SCHEMA)


def made(tmp_path: Path, table_type: str = "mor", **more: Any) -> HoodieTable:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], partition_by=["day"], table_type=table_type, **more
    )
    table.upsert(rows(1, 2, 3))
    table.upsert(rows(2, ts=2))
    return table


def files(table: HoodieTable) -> dict[str, bytes]:
    return {entry.path: table.storage.read(entry.path) for entry in table.storage.walk() if ".locks" not in entry.path}


def set_properties(table: HoodieTable, changes: dict[str, str | None]) -> None:
    """As another program would."""
    properties: dict[str, str | None] = {**parse_properties(table.storage.read(PROPERTIES)), **changes}
    table.storage.overwrite(PROPERTIES, render_properties({key: value for key, value in properties.items() if value is not None}))


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = files(table)
    told = table.upgrade(to=9, dry_run=True)
    assert (told.from_version, told.to_version, told.dry_run) == (6, 9, True)
    assert [step.split(" ")[0] for step in told.steps] == ["compact", "write", "set", "remove"]
    assert "hoodie.table.version=9" in told.steps[2]
    assert files(table) == before


def test_the_version_that_the_table_has_is_no_change(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = files(table)
    assert table.upgrade(to=6).steps == ()
    assert table.downgrade(to=6).steps == ()
    assert files(table) == before


@pytest.mark.parametrize(
    ("method", "to", "says"),
    [
        ("upgrade", 7, "to=7 is no table version; give one of 6, 8, 9"),
        ("downgrade", 9, "version 9 is reached by `upgrade`"),
        ("downgrade", 5, "to=5 is no table version"),
    ],
)
def test_another_version_or_direction_is_refused(tmp_path: Path, method: str, to: int, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        getattr(made(tmp_path), method)(to=to)


def test_a_downgrade_by_the_wrong_name_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, properties={"hoodie.write.table.version": "9"})
    with pytest.raises(OptionError, match="version 6 is reached by `downgrade`"):
        table.upgrade(to=6)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_all_of_the_table_is_there_in_every_version_and_writes_go_on(tmp_path: Path, table_type: str) -> None:
    table = made(tmp_path, table_type)
    table.savepoint(name="kept")
    first, second = (one.requested_time for one in table.timeline.completed().writes())
    for to in (8, 9, 8, 6, 9, 6):
        table = HoodieTable.open(table.path)
        change = table.upgrade(to) if to > int(table.config.version) else table.downgrade(to)
        assert (change.to_version, table.config.version) == (to, TableVersion(to))
        assert table.to_arrow(as_of=first).num_rows == 3
        assert sorted(table.to_arrow(as_of="kept")["ts"].to_pylist()) == [1, 1, 2]
        assert table.to_arrow(query="incremental", begin=first, end=second)["id"].to_pylist() == [2]
        assert table.verify().ok
        assert table.storage.head(MARK) is None
    table.upsert(rows(4, 2, ts=3))
    assert sorted(table.to_arrow()["ts"].to_pylist()) == [1, 1, 3, 3]
    table.restore("kept")
    assert sorted(HoodieTable.open(table.path).to_arrow()["ts"].to_pylist()) == [1, 1, 2]


def test_completion_times_of_a_later_version_come_back_after_a_downgrade(tmp_path: Path) -> None:
    table = made(tmp_path, "cow", properties={"hoodie.write.table.version": "9"})
    before = {one.requested_time: one.completed_at for one in table.timeline.completed().writes()}
    assert all(time != completed for time, completed in before.items())
    table.downgrade(6)
    table.upgrade(9)
    assert {one.requested_time: one.completed_at for one in table.timeline.completed().writes()} == before


@pytest.mark.parametrize("route", ["one batch", "shares"])
def test_writes_after_a_restore_to_logs_that_version_9_named_come_after_them(tmp_path: Path, route: str) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["day"], table_type="mor", properties={"hoodie.write.table.version": "9"}
    )
    table.upsert(rows(1, 2, 3))
    for ts in (2, 3):
        table.upsert(rows(2, ts=ts))
    table.delete(rows(3))
    table.savepoint(name="kept")
    table.upsert(rows(1, ts=9))
    table.downgrade(6)
    table.restore("kept")
    table = HoodieTable.open(table.path)
    assert {piece.base_instant for piece in table.state.view.latest_slices()} < set(archived_and_active(table))
    assert sorted(zip(*(table.to_arrow()[name].to_pylist() for name in ("id", "ts")), strict=True)) == [(1, 1), (2, 3)]
    assert table.log_compact(options={"hoodie.log.compaction.blocks.threshold": 1}).instant is None
    options = {"lakehouse.write.broadcast.max.bytes": 0} if route == "shares" else {}
    table.upsert(rows(2, 4, ts=4), options=options)
    table.upsert(rows(2, ts=5), options=options)
    assert sorted(zip(*(table.to_arrow()[name].to_pylist() for name in ("id", "ts")), strict=True)) == [(1, 1), (2, 5), (4, 4)]
    assert table.verify().ok
    table.compact()
    assert sorted(zip(*(table.to_arrow()[name].to_pylist() for name in ("id", "ts")), strict=True)) == [(1, 1), (2, 5), (4, 4)]


def archived_and_active(table: HoodieTable) -> list[str]:
    return [one.requested_time for one in (*table.state.archived_timeline.instants(), *table.timeline)]


def test_several_ordering_fields_are_refused_for_version_6_with_nothing_changed(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts", "v"], properties={"hoodie.write.table.version": "9"}
    )
    table.upsert(rows(1))
    before = files(table)
    with pytest.raises(VersionChangeError, match="version 6 keeps one ordering field"):
        table.downgrade(6)
    assert files(table) == before
    table.downgrade(8)
    assert table.config.ordering_fields == ("ts", "v")


def test_the_archive_and_its_write_ids_are_there_in_the_new_version(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    table.upsert(rows(9), write_id="job-1")
    for number in range(4):
        table.upsert(rows(5 + number, ts=number))
    table.clean(retain_commits=1)
    table.archive(min_commits=2, max_commits=2, options={"hoodie.clean.commits.retained": 1})
    archived = [one.requested_time for one in table.state.archived_timeline.instants()]
    assert archived
    for to in (9, 6):
        table = HoodieTable.open(table.path)
        (table.upgrade if to == 9 else table.downgrade)(to)
        table = HoodieTable.open(table.path)
        assert [one.requested_time for one in table.state.archived_timeline.instants()] == archived
        assert table.upsert(rows(9), write_id="job-1").was_written
        assert table.verify().ok


def test_the_command_line(tmp_path: Path) -> None:
    table = made(tmp_path)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["--warehouse", str(tmp_path), *arguments])

    planned = run("upgrade", "s.t", "--dry-run")
    assert (planned.exit_code, "dry run: nothing was changed" in planned.output) == (0, True), planned.output
    assert "set hoodie.table.version=9" in planned.output
    done = json.loads(run("upgrade", "s.t", "--to", "8", "--json").output)
    assert (done["from_version"], done["to_version"], done["dry_run"]) == (6, 8, False)
    assert run("downgrade", "s.t").exit_code == 0
    assert int(HoodieTable.open(table.path).config.version) == 6
    assert run("downgrade", "s.t", "--to", "7").exit_code == 2
    assert run("downgrade", "s.t", "--to", "8").exit_code == 2


def test_the_procedures(tmp_path: Path) -> None:
    table = made(tmp_path)

    def call(name: str, *arguments: tuple[str, Any]) -> pa.Table:
        return prepare(Call(name, (("table", "s.t"), *arguments), None)).answer(table)

    planned = call("upgrade_table", ("to_version", "NINE"), ("dry_run", True))
    assert set(planned["result"].to_pylist()) == {False}
    assert int(table.config.version) == 6
    done = call("upgrade_table", ("to_version", "NINE"))
    assert (set(done["result"].to_pylist()), set(done["to_version"].to_pylist())) == ({True}, {9})
    call("downgrade_table", ("to_version", "6"))
    assert int(table.config.version) == 6
    call("upgrade_table", ("to_version", 8))
    assert int(HoodieTable.open(table.path).config.version) == 8
    for wrong in ("TEN", 7, True):
        with pytest.raises(OptionError, match=r"is not a table version \(SIX, EIGHT, NINE, or its number\)"):
            call("upgrade_table", ("to_version", wrong))


def test_a_table_that_hudi_left_half_upgraded_is_refused_by_readers_and_by_an_upgrade(tmp_path: Path) -> None:
    table = made(tmp_path)
    moved = next(one for one in table.timeline.completed().writes())
    data = table.state.active.read(moved)
    table.storage.create(f".hoodie/timeline/{moved.requested_time}_{moved.requested_time}.deltacommit", data)
    table.storage.delete(f".hoodie/{moved.requested_time}.deltacommit")
    with pytest.raises(UnsupportedTableVersionError, match="an upgrade was not finished"):
        HoodieTable.open(table.path)


def test_a_folder_of_a_later_timeline_without_instants_is_no_table_of_ours_to_upgrade(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.storage.create(".hoodie/timeline/history/_version_", b"1")
    assert HoodieTable.open(table.path).to_arrow().num_rows == 3
    with pytest.raises(VersionChangeError, match="remove the folder"):
        HoodieTable.open(table.path).upgrade(9)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    table.storage.create(".hoodie/archived/.commits_.archive.1_1-0-1", b"#HUDI# and then nothing of a log")
    before = files(table)
    with pytest.raises(VersionChangeError, match="the archive is damaged"):
        HoodieTable.open(table.path).upgrade(9)
    assert files(table) == before


def test_a_torn_commit_is_told_before_anything_is_changed(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    oldest = table.timeline.completed().first()
    assert oldest is not None
    table.storage.overwrite(f".hoodie/{oldest.requested_time}.commit", b"{")
    before = files(table)
    with pytest.raises(CorruptInstantError):
        HoodieTable.open(table.path).upgrade(9)
    assert files(table) == before


def test_definitions_of_indexes_say_their_version_in_version_9(tmp_path: Path) -> None:
    table = made(tmp_path, "cow", properties={"hoodie.write.table.version": "8"})
    path = ".hoodie/.index_defs/index.json"
    known = {"indexName": "secondary_index_v", "indexType": "secondary_index", "sourceFields": ["v"]}
    definitions = {"indexDefinitions": {"one": known, "two": {**known, "version": "V2"}}}
    table.storage.create(path, json.dumps(definitions).encode())
    set_properties(table, {"hoodie.table.index.defs.path": path})
    table = HoodieTable.open(table.path)
    table.upgrade(9)
    found = json.loads(table.storage.read(path))["indexDefinitions"]
    assert {name: one["version"] for name, one in found.items()} == {"one": "V1", "two": "V2"}
    told = table.downgrade(6, dry_run=True)
    assert any("version 6 has no definitions of secondary or expression indexes" in note for note in told.notes)


# versions that cannot be opened


@pytest.mark.parametrize("version", ["2", "3", "4", "5", "7"])
def test_tables_of_older_versions_and_of_7_come_to_version_6(tmp_path: Path, version: str) -> None:
    table = made(tmp_path)
    table.storage.create(".hoodie/.aux/20200101000000000.compaction.requested", b"a copy of a plan")
    table.storage.create(".hoodie/metadata/files/old.hfile", b"stale")
    set_properties(table, {"hoodie.table.version": version, "hoodie.table.metadata.partitions": "files"})
    with pytest.raises(UnsupportedTableVersionError, match=r"lakehouse upgrade .* --to 6"):
        HoodieTable.open(table.path)
    before = files(table)
    planned = upgrade_table(table.path, to=6, dry_run=True)
    assert (planned.from_version, planned.to_version, files(table)) == (int(version), 6, before)
    done = upgrade_table(table.path, to=6)
    assert done.steps == planned.steps
    opened = HoodieTable.open(table.path)
    assert (int(opened.config.version), opened.to_arrow().num_rows, opened.verify().ok) == (6, 3, True)
    left = [entry.path for entry in opened.storage.walk(".hoodie")]
    assert not [path for path in left if path.endswith(".compaction.requested") or "/metadata/" in path]


def test_an_older_table_goes_on_to_version_9_at_once_also_by_the_command_line(tmp_path: Path) -> None:
    table = made(tmp_path)
    set_properties(table, {"hoodie.table.version": "5"})
    ended = CliRunner().invoke(cli, ["--warehouse", str(tmp_path), "upgrade", table.path, "--json"])
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.output)
    assert (told["from_version"], told["to_version"]) == (5, 9)
    assert HoodieTable.open(table.path).to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("version", "changes", "says"),
    [
        ("1", {}, "version 1, which Hudi 0.6.0 to 0.8.0 writes"),
        ("2", {"hoodie.table.keygenerator.class": None}, "hoodie.table.keygenerator.class, which writers of version 2"),
        ("2", {"hoodie.datasource.write.hive_style_partitioning": None}, "hive_style_partitioning"),
        ("5", {"hoodie.timeline.layout.version": "2"}, "a table of version 5 has the layout 1"),
    ],
)
def test_older_tables_that_lack_something_are_refused(tmp_path: Path, version: str, changes: dict[str, str | None], says: str) -> None:
    table = made(tmp_path)
    set_properties(table, {"hoodie.table.version": version, **changes})
    before = files(table)
    with pytest.raises((VersionChangeError, UnsupportedTableVersionError), match=says):
        upgrade_table(table.path, to=6)
    assert files(table) == before


def test_rows_in_the_old_partition_of_nulls_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.storage.create("day=default/.hoodie_partition_metadata", b"")
    set_properties(table, {"hoodie.table.version": "4"})
    with pytest.raises(VersionChangeError, match="'day=default' holds rows without a partition value"):
        upgrade_table(table.path, to=6)


def test_a_torn_commit_of_an_older_table_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    newest = table.timeline.completed().last()
    assert newest is not None
    table.storage.overwrite(f".hoodie/{newest.requested_time}.commit", b"{")
    set_properties(table, {"hoodie.table.version": "5"})
    with pytest.raises(VersionChangeError, match="a commit is damaged"):
        upgrade_table(table.path, to=6)


# beside writers


class Meanwhile(LocalRunner):
    """Something happens when the tasks of a write are done, and before it commits."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(1)
        self.act = act

    def run(self, function: Any, tasks: Sequence[Any], *, name: str) -> list[Any]:
        found = super().run(function, tasks, name=name)
        self.act()
        return found


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_write_that_is_under_way_without_the_lock_is_waited_for(tmp_path: Path, table_type: str) -> None:
    opened = made(tmp_path, table_type, properties={"hoodie.write.table.version": "9"})
    writer = LocalTable(opened.storage)
    other = LocalTable(LocalStorage(opened.path), lock_timeout_ms=300)
    refused: list[LakehouseError] = []

    def change() -> None:
        try:
            other.change_version(6)
        except LakehouseError as error:
            refused.append(error)

    writer.runner = Meanwhile(change)
    writer.upsert(rows(2, 7, ts=5))
    assert refused
    assert all(isinstance(error, CommitConflictError | LockTimeoutError) for error in refused), refused
    table = HoodieTable.open(opened.path)
    assert (int(table.config.version), sorted(table.to_arrow()["id"].to_pylist())) == (9, [1, 2, 3, 7])
    other.change_version(6)
    table = HoodieTable.open(opened.path)
    assert (int(table.config.version), sorted(table.to_arrow()["ts"].to_pylist())) == (6, [1, 1, 5, 5])
