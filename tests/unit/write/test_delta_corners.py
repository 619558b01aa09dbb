"""What a log can say, what it cannot, and what a delta commit leaves on storage."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CommitConflictError, OptionError
from lakehouse_engine.format.log.blocks import BlockType, LogBlock
from lakehouse_engine.format.log.delete_block import Wrapper, decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.locate import tagging
from lakehouse_engine.write.locate.settle import SettleTask
from lakehouse_engine.write.plan import mor_upsert as upsert
from lakehouse_engine.write.plan import write_plan as plan
from tests.support.properties import edit_properties
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import TableBuilder
from tests.support.table_model import DELETED, Row
from tests.support.tasks import replace_tasks
from tests.support.versions import VERSIONS, tables_of
from tests.unit.write.test_delta_writes import make, row

ORDERED: dict[str, Any] = {"ordering": "ts", "options": {"hoodie.parquet.small.file.limit": 0}}
PARTITIONED: dict[str, Any] = {**ORDERED, "partition_by": ["p"]}


def files(built: TableBuilder, pattern: str) -> list[Path]:
    return sorted(path for path in built.path.rglob(pattern) if ".hoodie" not in path.relative_to(built.path).parts)


def logs(built: TableBuilder) -> list[Path]:
    return files(built, ".*.log.*")


def blocks(path: Path) -> list[LogBlock]:
    return list(read_blocks(path.read_bytes()))


def commit(built: TableBuilder, instant: str | None, suffix: str = "deltacommit") -> Any:
    return json.loads((built.path / ".hoodie" / f"{instant}.{suffix}").read_text())


# the traces of a delta commit


def test_a_delta_commit_says_what_hudi_says_of_its_logs_and_of_its_base_files(tmp_path: Path) -> None:
    built = make(tmp_path, **PARTITIONED)
    first = built.insert([row(1), row(2), row(3), row(4, "y")])
    second = built.upsert([row(1, ts=2), row(2, ts=2, deleted=True), row(5, "z")])
    third = built.delete([row(3)])
    assert (second.inserts, second.updates, second.deletes) == (1, 1, 1)
    assert (second.log_files, second.files_created, second.files_updated) == (1, 1, 0)
    [base] = files(built, f"p=x/*_{first.instant}.parquet")
    one, two = logs(built)
    for result, log, number, names, counts in (
        (second, one, 1, [one.name], (1, 1, 0, 1)),
        (third, two, 2, [one.name, two.name], (0, 0, 0, 1)),
    ):
        [stat] = commit(built, result.instant)["partitionToWriteStats"]["p=x"]
        members = ("path", "prevCommit", "baseFile", "logFiles", "logVersion", "logOffset", "fileSizeInBytes", "partitionPath")
        assert {member: stat[member] for member in members} == {
            "path": f"p=x/{log.name}",
            "prevCommit": first.instant,
            "baseFile": base.name,
            "logFiles": names,
            "logVersion": number,
            "logOffset": 0,
            "fileSizeInBytes": log.stat().st_size,
            "partitionPath": "p=x",
        }
        assert tuple(stat[member] for member in ("numWrites", "numUpdateWrites", "numInserts", "numDeletes")) == counts
    [new] = commit(built, second.instant)["partitionToWriteStats"]["p=z"]
    assert (new["prevCommit"], new["numInserts"], new.get("logVersion")) == ("null", 1, None)
    planned = commit(built, second.instant, "deltacommit.inflight")["partitionToWriteStats"]
    assert [(stat["fileId"] == "", stat["prevCommit"], stat["numUpdateWrites"]) for stat in planned["p=x"]] == [
        (True, "null", 0),
        (False, first.instant, 2),
    ]
    assert (built.path / ".hoodie" / f"{second.instant}.deltacommit.requested").read_bytes() == b""
    assert not list((built.path / ".hoodie" / ".temp").glob("*"))
    built.check(with_hudi_rs=True)


def test_deletions_are_logged_so_that_every_reader_applies_them(tmp_path: Path) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1, ts=5), row(2, ts=5), row(3, ts=5)])
    built.upsert([row(1, ts=6, deleted=True), row(2, ts=4, deleted=True)])
    [log] = logs(built)
    [block] = blocks(log)
    assert block.type is BlockType.DELETE
    deleted = decode_delete_block(block)
    assert (deleted.keys.to_pylist(), list(deleted.wrappers), deleted.values[Wrapper.INT].to_pylist()) == (["1"], [Wrapper.INT], [0])
    built.check(with_hudi_rs=True)


def test_files_of_retried_tasks_are_removed_by_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1)])
    once = plan.run_task
    replace_tasks(monkeypatch, lambda task: (once(task), once(task))[1])
    result = built.upsert([row(1, ts=2), row(2)])
    assert len(logs(built)) == 1
    assert len(files(built, f"*_{result.instant}.parquet")) == 1
    built.check(with_hudi_rs=True)


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1)])
    before = sorted(path for path in built.path.rglob("*") if path.is_file())

    def fail(task: Any) -> Any:
        plan.run_task(task)
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        replace_tasks(patched, fail)
        with pytest.raises(OSError, match="the disk is gone"):
            built.upsert([row(1, ts=2), row(2, "new")])
    assert sorted(path for path in built.path.rglob("*") if path.is_file()) == before
    built.upsert([row(1, ts=3)])
    built.check(with_hudi_rs=True)


NOTHING: dict[str, Any] = {
    "a row that is older": lambda built: built.upsert([row(1, ts=1)]),
    "an older deletion": lambda built: built.upsert([row(1, ts=1, deleted=True)]),
    "a deletion of what is not there": lambda built: built.upsert([row(9, deleted=True)]),
    "a deletion of what a log deleted": lambda built: built.delete([row(2)]),
    "a marked deletion of what a log deleted": lambda built: built.upsert([row(2, ts=9, deleted=True)]),
}


@pytest.mark.parametrize("write", NOTHING.values(), ids=NOTHING)
def test_a_write_without_effect_leaves_no_trace(tmp_path: Path, write: Any) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1, ts=5), row(2, ts=5)])
    built.delete([row(2)])
    before = sorted(path for path in built.path.rglob("*") if path.is_file())
    assert write(built).instant is None
    assert sorted(path for path in built.path.rglob("*") if path.is_file()) == before


# where new records go


def test_new_records_go_to_a_small_base_file_that_has_no_logs(tmp_path: Path) -> None:
    built = make(tmp_path)
    first = built.insert([row(1), row(2)])
    second = built.upsert([row(1, v="n"), row(3)])
    assert (second.files_updated, second.log_files) == (1, 0), "what is written anew takes its updates along"
    third = built.upsert([row(1, v="m")])
    assert (third.files_updated, third.log_files) == (0, 1)
    fourth = built.upsert([row(4)])
    assert (fourth.files_created, fourth.files_updated) == (1, 0), "the file with a log is left alone"
    [stat] = commit(built, second.instant)["partitionToWriteStats"][""]
    assert (stat["prevCommit"], stat["numInserts"], stat["numUpdateWrites"]) == (first.instant, 1, 1)
    built.check(with_hudi_rs=True)


def test_one_small_file_of_a_partition_takes_new_records_in_a_commit(tmp_path: Path) -> None:
    built = make(tmp_path)
    for key in range(3):
        built.options["hoodie.parquet.small.file.limit"] = 0
        built.insert([row(key)])
    built.options["hoodie.parquet.small.file.limit"] = 2**20
    result = built.insert([row(key) for key in range(10, 20)])
    assert (result.files_created, result.files_updated) == (0, 1)
    built.check(with_hudi_rs=True)


# what is known of keys under logs


def test_where_no_ordering_counts_and_logs_only_update_no_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path, options={"hoodie.parquet.small.file.limit": 0})
    built.insert([row(1), row(2)])
    read: list[SettleTask] = []
    settle = tagging.settle
    monkeypatch.setattr(tagging, "settle", lambda task: (read.append(task), settle(task))[1])
    for number in range(3):
        built.upsert([row(1, v=f"{number}")])
    assert not read
    built.delete([row(2)])
    built.upsert([row(2, v="again")])
    assert [task.fold for task in read] == [True]
    built.check(with_hudi_rs=True)


def test_a_deleted_key_comes_back_to_its_file_group(tmp_path: Path) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1, ts=5), row(2, ts=5)])
    built.delete([row(1)])
    back = built.upsert([row(1, ts=7, v="back")])
    assert (back.inserts, back.updates, back.files_created, back.log_files) == (1, 0, 0, 1)
    built.check(with_hudi_rs=True)


def test_a_row_that_is_older_than_the_deleted_base_row_does_not_bring_that_one_back(tmp_path: Path) -> None:
    built = make(tmp_path, **ORDERED)
    first = built.insert([row(1, ts=10), row(2, ts=10)])
    built.delete([row(1)])
    back = built.upsert([row(1, ts=5, v="older"), row(2, ts=11)])
    assert (back.inserts, back.updates, back.log_files, back.files_updated) == (1, 1, 0, 1), "Hudi 0.15 would read the base row from a log"
    assert back.instant is not None
    assert files(built, f"*_{back.instant}.parquet")
    assert files(built, f"*_{first.instant}.parquet")
    built.check(with_hudi_rs=True)


def test_where_ordering_counts_among_log_rows_only_what_loses_there_is_not_logged(tmp_path: Path) -> None:
    """`OverwriteWithLatestAvroPayload` with a precombine field, as Hudi 0.15 makes its tables."""
    built = make(tmp_path, payload="overwrite", **ORDERED)

    def stored() -> list[int]:
        ours = built.table.to_arrow(meta_columns=True)
        assert_same_rows(read_with_hudi_rs(built.path), ours)
        return [one["ts"] for one in ours.to_pylist()]

    def upsert(ts: int, **how: Any) -> Any:
        return built.table.upsert(built.arrow([row(1, ts=ts, **how)]), options=built.options)

    upsert(10)
    assert upsert(5).updates == 1, "a base row is overwritten whatever its ordering value"
    assert stored() == [5]
    assert upsert(4).instant is None
    assert upsert(4, deleted=True).instant is None
    upsert(6)
    assert stored() == [6]
    built.table.delete(built.arrow([row(1)], ["id"]), options=built.options)
    assert upsert(1).inserts == 1
    assert stored() == [1]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BUCKET"])
def test_a_value_below_zero_replaces_a_row_without_one_for_every_reader(tmp_path: Path, index: str) -> None:
    """hudi-rs takes a missing ordering value for 0."""
    built = make(tmp_path, **ORDERED, index=index)
    built.insert([row(1, ts=None), row(2, ts=None), row(3, ts=-7)])
    built.upsert([row(1, ts=-5), row(2, ts=5), row(3, ts=-6)])
    built.check(with_hudi_rs=True)
    built.upsert([row(2, ts=None), row(1, ts=-4), row(3, ts=-9)])
    built.check(with_hudi_rs=True)
    built.delete([row(2)])
    built.upsert([row(2, ts=None)])
    built.upsert([row(2, ts=-1)])
    built.check(with_hudi_rs=True)


def test_a_record_that_moves_dies_where_it_was_and_may_come_back(tmp_path: Path) -> None:
    built = make(tmp_path, **PARTITIONED)
    built.insert([row(1, "x"), row(2, "y")])
    there = built.upsert([row(1, "y", ts=2)])
    assert (there.inserts, there.updates, there.deletes) == (0, 1, 0)
    built.upsert([row(1, "y", ts=3, v="there")])
    assert built.upsert([row(1, "x", ts=2)]).instant is None, "it is compared with what is stored now"
    back = built.upsert([row(1, "x", ts=4, v="back")])
    assert (back.inserts, back.updates, back.deletes, back.files_created) == (0, 1, 0, 0)
    built.delete([row(1)])
    built.upsert([row(1, "z", ts=1)])
    built.check(with_hudi_rs=True)


def test_updates_that_stay_where_they_are_are_logged_under_the_stored_partition(tmp_path: Path) -> None:
    options = {"hoodie.simple.index.update.partition.path": False, "hoodie.parquet.small.file.limit": 0}
    built = make(tmp_path, partition_by=["p"], options=options)
    built.insert([row(1, "x"), row(2, "x")])
    built.table.upsert(built.arrow([row(1, "y", v="n")]), options=built.options)
    stored = built.table.to_arrow(meta_columns=True).to_pylist()
    assert {(one["_hoodie_partition_path"], one["id"], one["v"]) for one in stored} == {("p=x", 1, "n"), ("p=x", 2, "v")}
    built.table.delete(built.arrow([row(1)], ["id"]), options=built.options)
    built.table.upsert(built.arrow([row(1, "y", v="m")]), options=built.options)
    stored = built.table.to_arrow(meta_columns=True).to_pylist()
    assert {(one["_hoodie_partition_path"], one["id"], one["v"]) for one in stored} == {("p=y", 1, "m"), ("p=x", 2, "v")}


def test_columns_are_updated_from_what_is_stored_now(tmp_path: Path) -> None:
    built = make(tmp_path, **PARTITIONED)
    built.insert([row(1, "x", v="a", w="a"), row(2, "x")])
    built.upsert([row(1, "x", ts=3, v="b", w="b")])
    result = built.upsert([row(1, "y", ts=4, v="c", w="ignored"), row(2, "x", ts=0, v="older")], ["v"])
    assert (result.updates, result.log_files) == (1, 1)
    assert built.table.to_arrow().to_pylist()[0][DELETED] is False
    built.check(with_hudi_rs=True)


def test_partial_updates_are_logged_whole(tmp_path: Path) -> None:
    built = make(tmp_path, payload="partial", **PARTITIONED)
    built.insert([row(1, ts=5, v="a", w=None)])
    built.upsert([row(1, ts=6, v=None, w="new")])
    built.upsert([row(1, ts=2, v="older", w="older")])
    built.upsert([row(1, "y", ts=9, v=None, w=None)])
    built.delete([row(1)])
    built.upsert([row(1, "x", ts=7, v=None)])
    built.check()


def test_one_of_two_rows_of_a_key_is_deleted_by_its_number(tmp_path: Path) -> None:
    for logged in (False, True):
        built = make(tmp_path, f"t{logged}", **ORDERED)
        built.table.insert(built.arrow([row(1, ts=5), row(1, ts=10), row(2)]), options=built.options)
        if logged:
            built.table.upsert(built.arrow([row(2, ts=3)]), options=built.options)
        result = built.table.upsert(built.arrow([row(1, ts=7, deleted=True)]), options=built.options)
        assert result.deletes == 1
        assert sorted((one["id"], one["ts"]) for one in built.table.to_arrow().to_pylist()) == [(1, 10), (2, 3 if logged else 1)]


def test_single_rows_are_replaced_by_their_numbers_also_in_logs(tmp_path: Path) -> None:
    built = make(tmp_path, options={"hoodie.parquet.small.file.limit": 0})
    built.insert([row(1), row(2), row(3)])
    built.upsert([row(2, v="logged")])
    built.insert([row(7), row(8)])
    stored = built.table.to_arrow(meta_columns=True)
    chosen = stored.filter(pa.compute.is_in(stored["id"], pa.array([2, 3, 8])))
    result = built.table.replace_rows(built.arrow([row(20)]), replaced=chosen, options=built.options)
    assert (result.deletes, result.inserts) == (3, 1)
    assert sorted(one["id"] for one in built.table.to_arrow().to_pylist()) == [1, 7, 20]
    assert_same_rows(read_with_hudi_rs(built.path), built.table.to_arrow(meta_columns=True))


def test_keys_to_delete_beside_an_upsert_are_compared_with_what_is_stored_now(tmp_path: Path) -> None:
    built = make(tmp_path, **PARTITIONED)
    built.insert([row(key, ts=5) for key in range(1, 5)])
    built.upsert([row(1, ts=9), row(2, ts=9)])
    deletes = pa.table({"id": pa.array([1, 3, 4], pa.int64()), "ts": pa.array([7, 7, 9], pa.int64())})
    built.table.upsert(built.arrow([row(4, ts=8)]), delete_keys=deletes, options=built.options)
    assert sorted((one["id"], one["ts"]) for one in built.table.to_arrow().to_pylist()) == [(1, 9), (2, 9), (4, 8)]


# with services


def test_while_a_compaction_is_pending_logs_go_to_the_slice_that_it_will_make(tmp_path: Path) -> None:
    built = make(tmp_path, **ORDERED)
    built.insert([row(1, ts=10), row(2, ts=10)])
    built.upsert([row(1, ts=11)])
    planned = built.table.compact("schedule").instant
    assert planned is not None
    built.upsert([row(2, ts=12), row(3)])
    built.delete([row(1)])
    assert [path.name.split("_")[1].split(".")[0] for path in logs(built)].count(planned) == 2
    [stat] = commit(built, built.table.timeline.completed().last().requested_time)["partitionToWriteStats"][""]  # type: ignore[union-attr]
    assert (stat["prevCommit"], stat["logVersion"], stat["baseFile"]) == (planned, 2, "")
    built.check()
    before = built.table.timeline
    with pytest.raises(CommitConflictError, match="run the compaction first"):
        built.upsert([row(1, ts=1)])
    assert built.table.timeline == before
    built.table.compact("run")
    built.upsert([row(1, ts=1)])
    assert_same_rows(read_with_hudi_rs(built.path), built.check_snapshot())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BUCKET"])
def test_a_row_that_comes_back_above_a_pending_compaction_is_compared_with_the_row_that_this_will_store(
    tmp_path: Path, version: int, index: str
) -> None:
    """Its base file has the row that was logged below, whatever was deleted since."""
    buckets = {"hoodie.bucket.index.num.buckets": "1"} if index == "BUCKET" else {}
    with tables_of(version):
        built = make(tmp_path, index=index, properties=buckets, **ORDERED)
    built.insert([row(1, ts=2), row(2)])
    built.upsert([row(1, ts=5)])
    built.table.compact("schedule")
    built.delete([row(1)])
    before = built.table.timeline
    with pytest.raises(CommitConflictError, match="run the compaction first"):
        built.upsert([row(1, ts=4)])
    assert built.table.timeline == before
    built.upsert([row(1, "back", ts=5), row(3)])
    built.check()
    built.table.compact("run")
    built.check()
    assert_same_rows(read_with_hudi_rs(built.path), built.check_snapshot())


def test_a_compaction_of_our_logs_changes_no_row_and_writes_go_on(tmp_path: Path) -> None:
    built = make(tmp_path, **PARTITIONED)
    built.insert([row(key, "xy"[key % 2]) for key in range(8)])
    for number in range(2, 5):
        built.upsert([row(key, "xy"[key % 2], ts=number) for key in range(number, 8)])
        built.delete([row(number)])
        built.table.compact()
        assert_same_rows(read_with_hudi_rs(built.path), built.check_snapshot())


# what is refused, and how tasks travel


def test_a_write_cannot_have_another_payload_than_its_table(tmp_path: Path) -> None:
    built = make(tmp_path, **ORDERED)
    with pytest.raises(OptionError, match="OverwriteWithLatest"):
        built.table.upsert(built.arrow([row(1)]), options={"hoodie.datasource.write.payload.class": "OverwriteWithLatestAvroPayload"})


def test_tasks_of_a_delta_commit_can_be_sent_to_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path, payload="partial", **PARTITIONED)
    sent: list[str] = []

    def travelled(function: Any) -> Any:
        def run(task: Any) -> Any:
            sent.append(type(task).__name__)
            return function(pickle.loads(pickle.dumps(task)))

        return run

    replace_tasks(monkeypatch, travelled(plan.run_task))
    monkeypatch.setattr(tagging, "settle", travelled(tagging.settle))
    monkeypatch.setattr(upsert, "combine_slice", travelled(upsert.combine_slice))
    rows: list[Row] = [row(1, ts=5), row(2, ts=5)]
    built.insert(rows)
    built.upsert([row(1, ts=6), row(2, "y", ts=6)])
    built.upsert([row(1, ts=3, deleted=True)])
    built.upsert([row(1, ts=2), row(2, "y", ts=7)])
    assert set(sent) == {"CreateTask", "SettleTask", "CombineTask", "AppendTask", "SliceMergeTask"}
    built.check()


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("changed", [["b", "v"], ["a", "v"], ["v"], ["a", "b", "v"]])
def test_ordering_fields_move_with_a_row_that_wins_whatever_columns_are_updated(tmp_path: Path, kind: str, changed: list[str]) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("v", pa.string())])
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", schema, ["id"], ["a"], table_type=kind))
    edit_properties(tmp_path / "t", {"precombine.field=a": "precombine.field=a,b"})
    table = HoodieTable.open(str(tmp_path / "t"))
    table.bulk_insert(pa.table([[1, 2], [5, 5], [9, 9], ["base", "base"]], schema=schema))
    table.upsert(pa.table([[1], [6], [1], ["new"]], schema=schema), merge_update_columns=changed)
    expected = {"id": 1, "a": 5, "b": 9, "v": "base"} | {"a": 6, "b": 1, "v": "new"}
    assert expected in table.to_arrow().to_pylist()
    if kind == "mor":
        table.services.compact()
        assert expected in table.to_arrow().to_pylist()
