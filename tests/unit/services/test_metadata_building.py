"""`rebuild_metadata` and `drop_metadata`: under the table's lock, beside nothing that is pending, and by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import CommitConflictError, LockTimeoutError, OptionError
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
OPTIONS = {"hoodie.write.lock.wait_time_ms": 500}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "p": [f"p{number % 2}" for number in ids]}, schema=SCHEMA)


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"], table_type="mor", version=TableVersion(request.param))
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    made = HoodieTable.open(str(tmp_path / "t"), options=OPTIONS)
    made.insert(rows(1, 2, 3))
    made.upsert(rows(3, 4))
    return made


def findings(table: HoodieTable) -> tuple[Any, ...]:
    return check_metadata_table(TableState.load(table.storage)).findings


def test_a_rebuild_makes_what_was_there_again(table: HoodieTable) -> None:
    assert table.rebuild_metadata().built == ("files",)
    first = table.rebuild_metadata(["record_index", "column_stats"])
    assert first.built == ("column_stats", "record_index")
    assert first.dropped == ()
    assert first.partitions == ("column_stats", "files", "record_index")
    again = table.rebuild_metadata()
    assert again.dropped == again.built == again.partitions == first.partitions
    assert findings(table) == ()


def test_a_rebuild_of_some_leaves_the_others(table: HoodieTable) -> None:
    table.rebuild_metadata(["record_index", "column_stats"])
    index = {path: path.read_bytes() for path in Path(table.path, ".hoodie/metadata/record_index").iterdir()}
    changed = table.rebuild_metadata(["column_stats", "bloom_filters"])
    assert (changed.dropped, changed.built) == (("column_stats",), ("bloom_filters", "column_stats"))
    assert {path: path.read_bytes() for path in Path(table.path, ".hoodie/metadata/record_index").iterdir()} == index
    assert findings(table) == ()


def test_a_drop_takes_all_or_some(table: HoodieTable) -> None:
    table.rebuild_metadata(["record_index", "column_stats"])
    assert table.drop_metadata(["record_index"]).partitions == ("column_stats", "files")
    assert findings(table) == ()
    with pytest.raises(OptionError, match="no partition 'record_index'"):
        table.drop_metadata(["record_index"])
    assert table.drop_metadata().dropped == ("column_stats", "files")
    assert not Path(table.path, ".hoodie/metadata").exists()
    assert table.drop_metadata().dropped == ()


def test_nothing_is_dropped_or_built_while_a_plan_is_pending(table: HoodieTable) -> None:
    table.rebuild_metadata(["column_stats"])
    planned = table.compact("schedule").instant
    assert planned is not None
    state = TableState.load(table.storage)
    with pytest.raises(CommitConflictError, match=planned) as raised:
        table.rebuild_metadata(["record_index"])
    assert "run its plan" in str(raised.value)
    assert TableState.load(table.storage).config == state.config


def test_a_partition_that_the_table_cannot_have_is_refused_before_the_lock(table: HoodieTable) -> None:
    with TableLock(table.storage, 1000), pytest.raises(OptionError, match="'nothing'"):
        table.rebuild_metadata(["nothing"])


def test_a_writer_at_work_is_waited_for(table: HoodieTable) -> None:
    """Under the lock of another process nothing is changed."""
    table.rebuild_metadata(["column_stats"])
    before = TableState.load(table.storage).config
    held, done = Event(), Event()

    def hold() -> None:
        with TableLock(table.storage, 1000):
            held.set()
            done.wait(30)

    holder = Thread(target=hold)
    holder.start()
    held.wait(30)
    try:
        with pytest.raises(LockTimeoutError):
            table.drop_metadata()
    finally:
        done.set()
        holder.join()
    assert TableState.load(table.storage).config == before


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["metadata", *arguments], catch_exceptions=False)
    return result.exit_code, result.output


def test_the_command_line_builds_checks_and_drops(table: HoodieTable) -> None:
    code, text = run("rebuild", table.path, "--partitions", "record_index, bloom_filters", "--json")
    assert (code, json.loads(text)["built"]) == (0, ["bloom_filters", "files", "record_index"])
    code, text = run("check", table.path)
    assert (code, "4 keys" in text) == (0, True)
    code, text = run("drop", table.path, "--partitions", "bloom_filters", "--json")
    assert json.loads(text) == {"partitions": ["files", "record_index"], "built": [], "dropped": ["bloom_filters"]}
    code, text = run("drop", table.path)
    assert (code, "dropped" in text) == (0, True)
    assert run("rebuild", table.path, "--partitions", " , ")[0] == 2


def test_what_is_built_is_kept_up_by_writes_and_services(table: HoodieTable) -> None:
    partitions = ["record_index", "column_stats", "bloom_filters", *(["partition_stats"] if int(table.config.version) > 6 else [])]
    built = table.rebuild_metadata(partitions).partitions
    table.upsert(rows(2, 5, 6))
    table.delete(rows(1))
    assert findings(table) == ()
    table.compact()
    table.insert_overwrite(rows(8))
    assert findings(table) == ()
    table.rollback(table.timeline.completed().writes().instants[-1].requested_time)
    table.upsert(rows(2, 9))
    table.clean(retain_commits=1)
    assert findings(table) == ()
    assert table.config.metadata_partitions == built
    # A partition that is built later than others knows as much as they do.
    table.drop_metadata(["record_index"])
    table.upsert(rows(10))
    table.rebuild_metadata(["record_index"])
    table.upsert(rows(11, 10))
    assert findings(table) == ()
    assert table.config.metadata_partitions == built
    table.rebuild_metadata()
    assert findings(table) == ()


def test_an_older_copy_of_a_partition_is_a_finding_that_names_what_it_lacks(tmp_path: Path) -> None:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"], version=TableVersion.NINE)
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    table = HoodieTable.open(str(tmp_path / "t"))
    table.insert(rows(1))
    table.rebuild_metadata(["column_stats", "partition_stats"])
    folder = Path(table.path, ".hoodie/metadata/partition_stats")
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    table.insert(rows(2))
    assert findings(table) == ()
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink()
    (found,) = findings(table)
    assert ".log." in found.path
    assert "is not there: build the metadata table again" in found.message
