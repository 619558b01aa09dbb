"""What each write does to rows, files and the timeline, and what it refuses."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.errors import (
    ChangedSinceReadError,
    DuplicateKeyError,
    LockTimeoutError,
    MissingFileError,
    MissingOptionError,
    OptionError,
    SchemaIncompatibleError,
    UnsupportedTypeError,
)
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.plan import write_plan as plan
from lakehouse_engine.write.source import MemorySource, PatchedSource, StagedFile, StagedSource, take_rows
from tests.support.properties import edit_properties
from tests.support.readers import assert_same_rows
from tests.support.table_builder import TableBuilder
from tests.support.table_model import DELETED, Row
from tests.support.tasks import replace_tasks

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())])
EVOLVE = {"hoodie.datasource.write.reconcile.schema": True}


def row(key: int, p: str | None = "x", ts: int | None = 1, v: str | None = "v", w: str | None = "w") -> Row:
    return {"id": key, "p": p, "ts": ts, "v": v, "w": w}


def make(folder: Path, schema: pa.Schema = SCHEMA, **how: Any) -> TableBuilder:
    return TableBuilder.create(folder / "t", schema, **{"partition_by": ["p"], "ordering": "ts", **how})


def timeline_files(built: TableBuilder) -> list[str]:
    return sorted(path.name for path in (built.path / ".hoodie").iterdir() if path.is_file())


def data_files(built: TableBuilder) -> set[Path]:
    return {path for path in built.path.rglob("*.parquet") if ".hoodie" not in path.relative_to(built.path).parts}


# the traces of a commit


def test_markers_announce_every_file_during_the_write_and_are_gone_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path)
    seen: list[tuple[str, bool]] = []

    def announced(storage: LocalStorage, path: str) -> Any:
        folder, name = (built.path / path).parent.name, (built.path / path).name
        markers = (built.path / ".hoodie" / ".temp").glob(f"*/{folder}/*.marker.*")
        seen.extend((marker.name.rpartition(".")[2], marker.name.startswith(name)) for marker in markers)
        assert not (built.path / path).exists(), "the marker comes first"
        return opened(storage, path)

    opened = LocalStorage.open_output
    monkeypatch.setattr(LocalStorage, "open_output", announced)
    built.insert([row(1)])
    built.upsert([row(1, ts=2)])
    assert seen == [("CREATE", True), ("MERGE", True)]
    assert not list((built.path / ".hoodie" / ".temp").glob("*"))


def test_every_partition_has_its_metafile(tmp_path: Path) -> None:
    built = make(tmp_path)
    first = built.insert([row(1, "x"), row(2, "y")])
    built.upsert([row(1, "z", ts=5)])
    for partition in ("p=x", "p=y", "p=z"):
        text = (built.path / partition / ".hoodie_partition_metadata").read_text()
        assert "partitionDepth=1" in text
        assert ("commitTime=" + str(first.instant) in text) is (partition != "p=z")


def test_the_commit_names_its_files_as_hudi_does(tmp_path: Path) -> None:
    built = make(tmp_path)
    first = built.insert([row(1), row(2)])
    second = built.table.upsert(built.arrow([row(1, ts=2), row(3)]), extra_metadata={"who": "me"})
    commit = json.loads((built.path / ".hoodie" / f"{second.instant}.commit").read_text())
    (stat,) = commit["partitionToWriteStats"]["p=x"]
    assert {name: stat[name] for name in ("prevCommit", "numWrites", "numInserts", "numUpdateWrites", "numDeletes", "partitionPath")} == {
        "prevCommit": first.instant,
        "numWrites": 3,
        "numInserts": 1,
        "numUpdateWrites": 1,
        "numDeletes": 0,
        "partitionPath": "p=x",
    }
    assert stat["fileSizeInBytes"] == (built.path / stat["path"]).stat().st_size == stat["totalWriteBytes"]
    assert commit["operationType"] == "UPSERT"
    assert commit["compacted"] is False
    assert commit["extraMetadata"]["who"] == "me"
    names = [field["name"] for field in json.loads(commit["extraMetadata"]["schema"])["fields"]]
    assert names == SCHEMA.names
    inflight = json.loads((built.path / ".hoodie" / f"{second.instant}.inflight").read_text())
    planned = inflight["partitionToWriteStats"]["p=x"]
    assert [(stat["fileId"], stat["numInserts"], stat["numUpdateWrites"]) for stat in planned] == [("", 1, 0), (stat["fileId"], 0, 1)]
    assert (built.path / ".hoodie" / f"{second.instant}.commit.requested").read_bytes() == b""


def test_a_new_table_has_the_properties_that_every_hudi_version_can_use(tmp_path: Path) -> None:
    properties = make(tmp_path).table.config.properties
    assert {
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.precombine.field": "ts",
        "hoodie.table.partition.fields": "p",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.archivelog.folder": "archived",
        "hoodie.populate.meta.fields": "true",
        "hoodie.table.cdc.enabled": "false",
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    }.items() <= properties.items()
    assert "hoodie.table.metadata.partitions" not in properties
    assert "hoodie.table.checksum" in properties


NOTHING: dict[str, Any] = {
    "empty upsert": lambda built: built.upsert([]),
    "empty insert": lambda built: built.insert([]),
    "empty bulk_insert": lambda built: built.bulk_insert([]),
    "empty insert_overwrite": lambda built: built.insert_overwrite([]),
    "delete of nothing": lambda built: built.delete([]),
    "delete of unknown keys": lambda built: built.delete([row(77)]),
    "delete of an unknown partition": lambda built: built.delete_partitions([("nowhere",)]),
    "upsert that loses": lambda built: built.upsert([row(1, ts=-5), row(2, ts=None)]),
    "moves that lose": lambda built: built.upsert([row(1, "y", ts=-5)]),
    "column updates that lose": lambda built: built.upsert([row(1, ts=-5, v="new")], columns=["v"]),
}


@pytest.mark.parametrize("write", NOTHING.values(), ids=NOTHING)
def test_a_write_with_nothing_to_do_leaves_no_trace(write: Any, tmp_path: Path) -> None:
    built = make(tmp_path)
    built.insert([row(1), row(2)])
    names, files = timeline_files(built), data_files(built)
    assert write(built).instant is None
    assert (timeline_files(built), data_files(built)) == (names, files)
    assert not list((built.path / ".hoodie" / ".temp").glob("*"))
    built.check()


def test_files_of_retried_tasks_are_removed_by_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path)
    built.insert([row(1)])
    replace_tasks(monkeypatch, lambda task: (once(task), once(task))[1])
    once = plan.run_task
    result = built.upsert([row(1, ts=2), row(2)])
    assert len([path for path in data_files(built) if f"_{result.instant}." in path.name]) == 1
    built.check()


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make(tmp_path)
    built.insert([row(1)])
    names, files = timeline_files(built), data_files(built)

    def fail(task: Any) -> Any:
        plan.run_task(task)
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        replace_tasks(patched, fail)
        with pytest.raises(OSError, match="the disk is gone"):
            built.upsert([row(1, ts=2), row(2, "new")])
    assert (timeline_files(built), data_files(built)) == (names, files)
    built.upsert([row(1, ts=3)])
    built.check()


def test_a_write_waits_for_the_table_lock(tmp_path: Path) -> None:
    built = make(tmp_path, options={"hoodie.write.lock.wait_time_ms": 50})
    with TableLock(LocalStorage(str(built.path)), 1000), ThreadPoolExecutor(1) as other:
        write = other.submit(built.table.insert, built.arrow([row(1)]), options=built.options)
        with pytest.raises(LockTimeoutError):
            write.result()
    assert not built.table.timeline.instants


# batches


def test_a_batch_is_reduced_by_the_ordering_field_or_refused(tmp_path: Path) -> None:
    built = make(tmp_path)
    rows = [row(1, ts=3, v="a"), row(1, ts=5, v="latest"), row(1, ts=4, v="b")]
    rows += [row(2, ts=None), row(2, ts=1, v="c"), row(2, ts=1, v="last")]
    result = built.upsert(rows)
    assert result.duplicates_dropped == 4
    built.check()
    with pytest.raises(DuplicateKeyError, match="for example"):
        built.table.upsert(built.arrow(rows), options={"lakehouse.duplicate.source.keys": "error"})
    built.check()


def test_rows_marked_as_deleted_delete_and_are_never_stored(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field(DELETED, pa.bool_()))
    built = make(tmp_path, schema)
    kept, gone = {DELETED: None}, {DELETED: True}
    built.upsert([{**row(1), **kept}, {**row(2), **kept}, {**row(3), **gone}])
    built.upsert([{**row(1, ts=9), **gone}, {**row(2, ts=-1), **gone}, {**row(4), **gone}])
    assert built.table.to_arrow(["id"]).column(0).to_pylist() == [2]
    built.upsert([{**row(2, "elsewhere", ts=9), **gone}])
    assert built.table.to_arrow().num_rows == 0
    built.check()
    built.table.insert(built.arrow([{**row(7), **kept}, {**row(8), **gone}]))
    assert built.table.to_arrow(["id"]).column(0).to_pylist() == [7]


def test_a_partial_update_that_moves_takes_the_stored_values_along(tmp_path: Path) -> None:
    built = make(tmp_path, payload="partial")
    built.upsert([row(1, v="old", w="kept"), row(2, ts=9, v=None), row(3)])
    result = built.upsert([row(1, "y", ts=2, v="new", w=None), row(2, "y", ts=5, v="filled"), row(3, None, ts=2, v=None)])
    assert built.model.snapshot() == [
        {"_hoodie_commit_time": result.instant, **expected}
        for expected in (row(1, "y", ts=2, v="new", w="kept"), row(2, "x", ts=9, v="filled"), row(3, "x", ts=2))
    ]
    built.check()
    paths = built.table.to_arrow(["id", "_hoodie_partition_path"], meta_columns=True).to_pylist()
    assert {one["id"]: one["_hoodie_partition_path"] for one in paths} == {1: "p=y", 2: "p=x", 3: "p=x"}


def test_a_record_moves_when_its_partition_column_is_among_the_columns_to_update(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.insert([row(1, v="old", w="kept"), row(2, ts=9, w="kept"), row(3, w="kept")])
    batch = built.arrow([row(1, "y", ts=2, v="new", w="n"), row(2, "y", ts=5, v="late"), row(3, ts=2, v="new"), row(4, "y", w="n")])
    result = built.table.upsert(batch, merge_update_columns=["p", "ts", "v"])
    assert (result.inserts, result.updates, result.deletes) == (1, 2, 0)
    rows = built.table.to_arrow(meta_columns=True).select(["id", "p", "ts", "v", "w", "_hoodie_partition_path"])
    assert sorted(tuple(one.values()) for one in rows.to_pylist()) == [
        (1, "y", 2, "new", "kept", "p=y"),
        (2, "x", 9, "v", "kept", "p=x"),
        (3, "x", 2, "new", "kept", "p=x"),
        (4, "y", 1, "v", "n", "p=y"),
    ]
    built.table.upsert(built.arrow([row(1, "z", ts=3, v="newer")]), merge_update_columns=["ts", "v"])
    rows = built.table.to_arrow(["id", "p", "v"])
    assert rows.filter(pc.equal(rows["id"], 1)).to_pylist() == [{"id": 1, "p": "y", "v": "newer"}]


def test_an_upsert_of_a_key_that_is_stored_twice_makes_no_third_row(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.table.insert(built.arrow([row(1, "x")]))
    built.table.insert(built.arrow([row(1, "y")]))
    built.table.upsert(built.arrow([row(1, "y", ts=2, v="new")]))
    assert built.table.to_arrow(["p", "v"]).to_pylist() == [{"p": "y", "v": "new"}]


def test_deletes_beside_an_upsert_are_of_keys_and_partitions(tmp_path: Path) -> None:
    built = make(tmp_path, index="SIMPLE")
    built.upsert([row(1, "x"), row(1, "y"), row(2, "x")])
    result = built.table.upsert(built.arrow([row(1, "x", ts=2)]), delete_keys=built.arrow([row(1, "y"), row(2, "x")], ["id", "p"]))
    assert (result.updates, result.deletes) == (1, 2)
    assert built.table.to_arrow(["id", "p", "ts"]).to_pylist() == [{"id": 1, "p": "x", "ts": 2}]


def test_a_delete_needs_the_key_columns_only(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.insert([row(1), row(2, "y")])
    assert built.table.delete(pa.table({"ID": [2], "other": ["ignored"]})).deletes == 1
    with pytest.raises(MissingOptionError, match="'id'"):
        built.table.delete(pa.table({"v": ["a"]}))
    local = TableBuilder.create(tmp_path / "local", SCHEMA, partition_by=["p"], index="SIMPLE")
    with pytest.raises(MissingOptionError, match="'p'"):
        local.table.delete(pa.table({"id": [1]}))


# schemas


def test_new_columns_and_wider_types_are_read_over_old_files(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    built = TableBuilder.create(tmp_path / "t", schema, partition_by=[])
    built.options["hoodie.parquet.small.file.limit"] = 0
    first = built.insert([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    wider = pa.table({"id": pa.array([2, 3], pa.int64()), "n": pa.array([2**40, 3], pa.int64()), "more": ["a", "b"]})
    with pytest.raises(SchemaIncompatibleError, match="to widen the table"):
        built.table.upsert(wider)
    built.table.upsert(wider, options={**EVOLVE, **built.options})
    built.table.upsert(pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([7], pa.int32())}), options={**EVOLVE, **built.options})
    expected = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([7, 2**40, 3], pa.int64()), "more": [None, "a", "b"]})
    assert_same_rows(built.table.to_arrow(), expected)
    assert_same_rows(built.table.to_arrow(as_of=first.instant), built.arrow([{"id": 1, "n": 1}, {"id": 2, "n": 2}]))


@pytest.mark.parametrize("column", ["id", "p", "ts"])
def test_key_partition_and_ordering_columns_are_never_left_out(column: str, tmp_path: Path) -> None:
    built = make(tmp_path)
    built.insert([row(1)])
    batch = built.arrow([row(1, ts=2)]).drop_columns([column])
    for arguments in ({"options": EVOLVE}, {"merge_update_columns": ["v"]}):
        with pytest.raises(SchemaIncompatibleError, match=column):
            built.table.upsert(batch, **arguments)
    built.check()


def test_only_an_overwrite_of_the_table_replaces_the_schema(tmp_path: Path) -> None:
    built = make(tmp_path)
    first = built.insert([row(1)])
    other = pa.table({"id": pa.array([5], pa.int64()), "p": ["q"], "ts": pa.array([1], pa.int64()), "fresh": [True]})
    with pytest.raises(OptionError, match="only insert_overwrite_table"):
        built.table.upsert(other, replace_schema=True)
    built.table.insert_overwrite_table(other, replace_schema=True)
    assert_same_rows(built.table.to_arrow(), other)
    assert built.table.to_arrow(as_of=first.instant).schema.names == SCHEMA.names


def test_timestamps_without_zone_are_refused_unless_allowed(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    allowed = {"lakehouse.allow.timestamp.ntz": "true"}
    with pytest.raises(UnsupportedTypeError, match="at"):
        TableBuilder.create(tmp_path / "refused", schema)
    built = TableBuilder.create(tmp_path / "t", schema, properties=allowed)
    batch = pa.table({"id": [1, 2], "at": pa.array([5, None], pa.timestamp("us"))})
    built.table.insert(batch)
    built.table.upsert(batch)
    assert_same_rows(built.table.to_arrow(), batch)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_an_update_of_some_columns_changes_no_type_and_adds_no_column(kind: str, tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int32()), ("c", pa.int32())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("n", pa.int32()), ("v", pa.string())])
    built = TableBuilder.create(tmp_path / "t", schema, table_type=kind)
    table, one = built.table, {"id": 1, "s": {"a": 1, "c": 2}, "n": 1, "v": "x"}
    table.insert(pa.Table.from_pylist([one], schema=schema))
    wider, narrower = pa.struct([*inner, ("b", pa.int32())]), pa.struct([("a", pa.int32())])
    for name, column in (
        ("s.b", pa.field("s", wider)),
        ("n", pa.field("n", pa.int64())),
        ("more", pa.field("more", pa.int32())),
    ):
        batch = pa.table([[1], pa.nulls(1, column.type)], schema=pa.schema([("id", pa.int64()), column]))
        changed = ["n"] if name == "n" else ["s"]
        if name == "more":
            batch = batch.append_column("s", pa.nulls(1, inner))
        with pytest.raises(SchemaIncompatibleError, match="reconcile") as refused:
            table.upsert(batch, merge_update_columns=changed)
        assert refused.value.context["column"] == name
        assert table.to_arrow().schema.equals(schema)
    less = pa.table([[1], pa.nulls(1, narrower)], schema=pa.schema([("id", pa.int64()), ("s", narrower)]))
    with pytest.raises(SchemaIncompatibleError, match=r"s\.c"):
        table.upsert(less, merge_update_columns=["s"])
    assert table.to_arrow().to_pylist() == [one]
    table.upsert(pa.table({"id": [1], "n": pa.array([2], pa.int64())}), merge_update_columns=["n"], options=EVOLVE)
    assert table.to_arrow().to_pylist() == [{**one, "n": 2}]


# tables with virtual keys, lost files


def test_a_table_without_meta_columns_is_updated_by_its_key_columns(tmp_path: Path) -> None:
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", SCHEMA, ["id"], ["ts"], ["p"], properties={}))
    edit_properties(tmp_path / "t", {"hoodie.populate.meta.fields=true": "hoodie.populate.meta.fields=false"})
    table, schema = HoodieTable.open(str(tmp_path / "t")), SCHEMA

    def arrow(*rows: Row) -> pa.Table:
        return pa.Table.from_pylist(list(rows), schema=schema)

    table.insert(arrow(row(1), row(2), row(3)))
    result = table.upsert(arrow(row(1, ts=2), row(2, "y", ts=2), row(4)))
    assert (result.inserts, result.updates) == (1, 2)
    assert table.delete(arrow(row(3))).deletes == 1
    assert_same_rows(table.to_arrow(), arrow(row(1, ts=2), row(2, "y", ts=2), row(4)))


def test_a_write_that_looks_keys_up_is_refused_when_a_file_is_lost(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.insert([row(1)])
    next(iter(data_files(built))).unlink()
    with pytest.raises(MissingFileError):
        built.table.upsert(built.arrow([row(1, ts=2)]))


# sources


def test_staged_and_patched_sources_give_the_rows_of_the_table_they_stand_for(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    table = pa.table({"k": [f"k{number}" for number in range(10)], "v": range(10)})
    files = []
    for number, (low, length) in enumerate(((0, 4), (4, 0), (4, 6))):
        with storage.open_output(f"{number}.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.slice(low, length))
        files.append(StagedFile(f"{number}.arrow", length))
    staged = StagedSource(storage, tuple(files), table.schema)
    rows = pa.array([0, 3, 4, 9]).to_numpy()
    for source in (staged, MemorySource(table)):
        assert source.num_rows == 10
        assert source.take(None).equals(table)
        assert source.take(rows).equals(table.take(pa.array(rows)))
        assert source.columns(["v"]).equals(table.select(["v"]))
    assert take_rows(staged.take(None), rows[::-1]).equals(table.take(pa.array(rows[::-1])))
    patch = pa.table({"k": ["three", "nine"], "v": [-3, -9]})
    patched = PatchedSource(staged, rows[[1, 3]], patch)
    assert patched.take(rows).column("k").to_pylist() == ["k0", "three", "k4", "nine"]
    assert patched.take(rows).column("v").to_pylist() == [0, -3, 4, -9]
    assert patched.columns(["v"]).column(0).to_pylist() == [0, 1, 2, -3, 4, 5, 6, 7, 8, -9]
    assert patched.take(rows[:1]).to_pylist() == [{"k": "k0", "v": 0}]


def test_a_late_deletion_beside_an_upsert_deletes_nothing(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.bulk_insert([row(1, ts=10), row(2, ts=10), row(3, ts=10)])
    result = built.table.upsert(built.arrow([row(4, ts=10)]), delete_keys=built.arrow([row(1, ts=5), row(2, ts=10)], ["id", "ts"]))
    assert (result.inserts, result.deletes) == (1, 1)
    assert set(built.table.to_arrow().column("id").to_pylist()) == {1, 3, 4}
    assert built.table.upsert(built.arrow([]), delete_keys=built.arrow([row(1)], ["id"])).deletes == 1


def test_a_batch_of_arrow_is_written_by_every_thread(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", schema))
    table = HoodieTable.open(str(tmp_path / "t"), options={"lakehouse.task.threads": "3"})
    rows = pa.table({"id": pa.array(range(300_000), pa.int64()), "v": pa.array(["v"] * 300_000)})
    assert table.bulk_insert(rows).files_created == 3
    keys = table.to_arrow(meta_columns=True).column("_hoodie_record_key")
    assert len(pc.unique(keys)) == 300_000


def test_single_rows_are_replaced_also_where_several_have_one_key(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.table.bulk_insert(built.arrow([row(1, v="keep"), row(1, v="drop"), row(2, v="drop"), row(3, "y", v="keep")]))
    stored = built.table.to_arrow(meta_columns=True)
    gone = stored.filter(pc.equal(stored.column("v"), "drop")).select(["_hoodie_commit_seqno"])
    result = built.table.replace_rows(built.arrow([row(3, "y", v="second"), row(4, "z", v="new")]), replaced=gone)
    assert (result.inserts, result.updates, result.deletes) == (2, 0, 2)
    left = built.table.to_arrow().select(["id", "v"]).to_pylist()
    assert sorted((one["id"], one["v"]) for one in left) == [(1, "keep"), (3, "keep"), (3, "second"), (4, "new")]
    assert built.table.replace_rows(built.arrow([]), replaced=gone, missing="ignore").instant is None


# columns that a batch leaves out


@pytest.mark.parametrize("how", [{}, {"table_type": "mor"}, {"table_type": "mor", "index": "BUCKET"}], ids=["cow", "mor", "mor-bucket"])
def test_an_upsert_without_a_column_leaves_it_as_stored_and_null_in_new_rows(tmp_path: Path, how: dict[str, Any]) -> None:
    options = {"hoodie.bucket.index.num.buckets": "2"} if "index" in how else {}
    built = make(tmp_path, properties=options, **how)
    built.table.upsert(built.arrow([row(1), row(2, ts=9)]))
    batch = built.arrow([row(1, ts=2, v="new"), row(2, ts=3, v="late"), row(3, v="added")], ["id", "p", "ts", "v"])
    built.table.upsert(batch, options=EVOLVE)
    built.table.upsert(built.arrow([row(1, ts=4, v="newer")], ["id", "p", "ts", "v"]), options=EVOLVE)
    rows = built.table.to_arrow(["id", "v", "w"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "v": "newer", "w": "w"}, {"id": 2, "v": "v", "w": "w"}, {"id": 3, "v": "added", "w": None}]


def test_a_column_to_update_that_the_batch_leaves_out_is_refused(tmp_path: Path) -> None:
    built = make(tmp_path)
    built.upsert([row(1)])
    with pytest.raises(OptionError, match="'w' is not in the batch"):
        built.table.upsert(built.arrow([row(1, ts=2)], ["id", "p", "ts", "v"]), merge_update_columns=["v", "w"], options=EVOLVE)


def test_replacing_the_columns_of_an_empty_table_is_a_commit(tmp_path: Path) -> None:
    built = make(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("fresh", pa.bool_())])
    assert built.table.insert_overwrite_table(schema.empty_table(), replace_schema=True).instant is not None
    assert built.table.schema == schema
    assert built.table.insert_overwrite_table(schema.empty_table(), replace_schema=True).instant is None


@pytest.mark.parametrize("how", [{}, {"table_type": "mor"}, {"table_type": "mor", "index": "BUCKET"}], ids=["cow", "mor", "mor-bucket"])
def test_rows_replaced_twice_from_one_reading_are_refused_and_stored_once(tmp_path: Path, how: dict[str, Any]) -> None:
    options = {"hoodie.bucket.index.num.buckets": "2"} if "index" in how else {}
    built = make(tmp_path, properties=options, **how)
    built.table.upsert(built.arrow([row(1), row(2), row(3)]))
    read = built.table.to_arrow(meta_columns=True).filter(pc.field("id") < 3)
    built.table.replace_rows(built.arrow([row(1, v="mine")]), replaced=read.slice(0, 1))
    before = built.table.timeline
    with pytest.raises(ChangedSinceReadError, match=r"1 of the 2 rows to be replaced.*missing='ignore'.*table=t"):
        HoodieTable.open(str(built.path)).replace_rows(built.arrow([row(1, v="theirs"), row(2, v="theirs")]), replaced=read)
    assert built.table.timeline == before
    built.table.replace_rows(built.arrow([row(2, v="theirs")]), replaced=read, missing="ignore")
    assert sorted((one["id"], one["v"]) for one in built.table.to_arrow().to_pylist()) == [(1, "mine"), (2, "theirs"), (3, "v")]
    for wrong in ("drop", 1):
        with pytest.raises(OptionError, match="missing"):
            built.table.replace_rows(built.arrow([row(2)]), replaced=read, missing=wrong)
    with pytest.raises(OptionError, match=r"missing='ignore' is for replace_rows"):
        built.table.upsert(built.arrow([row(2)]), missing="ignore")
