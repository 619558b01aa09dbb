"""The HBASE index finds keys by entries, believes none that it should not, and is kept by whatever changes the table."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_engine.commit import hbase_index
from lakehouse_engine.errors import (
    DuplicateKeyError,
    ExternalIndexError,
    MissingFileError,
    MissingOptionError,
    OptionError,
    PropertiesError,
    UnavailableError,
    UnsupportedTableError,
    VersionChangeError,
)
from lakehouse_engine.index.hbase.client import HBaseClient, Pace, happybase_driver
from lakehouse_engine.index.hbase.index import HBaseIndex
from lakehouse_engine.index.hbase.marks import Marks
from lakehouse_engine.index.hbase.rows import ENTRIES, LONGEST, row_keys
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.options import STORED_PREFIX, WriteOptions
from lakehouse_engine.options.hbase import HBaseOptions
from lakehouse_engine.services import hbase_index as service
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.alter import set_properties
from lakehouse_engine.write.create import TableSpec, create_table
from tests.crash.scenarios import SCHEMA, Row, batch
from tests.support.hbase import FakeHBase, fake_hbase
from tests.support.local_table import LocalTable
from tests.unit.index.test_hbase_crashes import FAST, MOVES, OPTIONS, START, check_entries, keys_of


@pytest.fixture
def hbase() -> Iterator[FakeHBase]:
    with fake_hbase() as server:
        yield server


def empty(table_type: str = "cow", properties: dict[str, str] | None = None, root: str = "memory://table") -> LocalTable:
    storage = MemoryStorage(root)
    given = {**OPTIONS, **FAST} if properties is None else properties
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], table_type, properties=given))
    return LocalTable(storage)


def filled(table_type: str = "cow", properties: dict[str, str] | None = None, rows: tuple[Row, ...] = START) -> LocalTable:
    table = empty(table_type, properties)
    table.upsert(batch(rows))
    return table


def values(table: LocalTable) -> list[str]:
    return sorted(table.read(["v"]).column("v").to_pylist())


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_entries_are_those_of_hudi_and_stay_at_updates(hbase: FakeHBase, table_type: str) -> None:
    table = filled(table_type)
    check_entries(table, hbase)
    (inserted,) = table.instants()
    before = hbase.entries("keys")
    assert {instant for _, _, instant in before.values()} == {inserted}
    assert before["a"][0] == "part=x"
    table.upsert(batch([("a", 2, "other", "a2"), ("n", 1, "x", "n1")]))
    assert values(table) == ["a2", "b1", "c1", "d1", "n1"]
    assert {key: entry for key, entry in hbase.entries("keys").items() if key != "n"} == before
    table.delete(batch([("a", 3, "x", "")]))
    assert "a" not in hbase.entries("keys")
    check_entries(table, hbase)


def test_only_files_that_entries_name_are_opened(hbase: FakeHBase) -> None:
    table = filled()
    state = table.state
    index = load_index(state, WriteOptions.read(state.config.prefixed(STORED_PREFIX)))
    assert isinstance(index, HBaseIndex)
    assert index.is_global
    assert index.told is not None
    found = index.told.find(pa.array(["a", "d", "nowhere"]))
    assert sorted(found.column("key").to_pylist()) == ["a", "d"]
    assert pickle.loads(pickle.dumps(index)).told is None


def test_entries_that_name_no_row_are_not_believed(hbase: FakeHBase) -> None:
    table = filled()
    partition, file_id, instant = hbase.entries("keys")["a"]
    hbase.put("keys", "dead", "part=x", "00000000-0000-0000-0000-000000000000-0", "20200101000000000")
    hbase.put("keys", "deleted", partition, file_id, instant)
    hbase.put("keys", "elsewhere", "part=gone", file_id, instant)
    hbase.tables["keys"][b"half"] = {b"_s:commit_ts": instant.encode()}
    new = ("dead", "deleted", "elsewhere", "half")
    table.upsert(batch([(key, 1, "y", key) for key in new]))
    assert keys_of(table) == sorted(["a", "b", "c", "d", *new])
    check_entries(table, hbase)


def test_a_record_moves_to_its_partition_where_that_is_asked_for(hbase: FakeHBase) -> None:
    table = filled(properties={**OPTIONS, **FAST, **MOVES})
    table.upsert(batch([("a", 2, "y", "a2"), ("d", 2, "new", "d2")]))
    assert values(table) == ["a2", "b1", "c1", "d2"]
    entries = hbase.entries("keys")
    assert (entries["a"][0], entries["d"][0]) == ("part=y", "part=new")
    check_entries(table, hbase)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("write", ["insert", "bulk_insert"])
def test_a_key_is_not_stored_twice(hbase: FakeHBase, table_type: str, write: str) -> None:
    table = filled(table_type)
    before = hbase.entries("keys")
    with pytest.raises(DuplicateKeyError, match="'c' twice, and the HBASE index of the table has one place"):
        getattr(table, write)(batch([("c", 2, "x", "c2"), ("n", 2, "x", "n2")]))
    assert values(table) == ["a1", "b1", "c1", "d1"]
    assert hbase.entries("keys") == before
    dropping = LocalTable(table.storage, {"hoodie.datasource.insert.dup.policy": "drop"})
    dropping.insert(batch([("c", 2, "x", "c2"), ("n", 2, "x", "n2")]))
    assert values(table) == ["a1", "b1", "c1", "d1", "n2"]


def test_a_server_that_dies_fails_the_write_and_a_later_one_takes_a_new_connection(hbase: FakeHBase) -> None:
    table = filled()
    entries, connections = hbase.entries("keys"), hbase.connections

    def die(operation: str) -> None:
        hbase.is_down = hbase.is_down or operation == "put"

    hbase.before = die
    with pytest.raises(ExternalIndexError, match="put entries in the table 'keys', asked 3 times by its Thrift server at h:9090") as raised:
        table.upsert(batch([("n", 1, "x", "n1")]))
    assert (raised.value.context["host"], raised.value.context["port"], raised.value.context["hbase_table"]) == ("h", "9090", "keys")
    hbase.before = lambda operation: None
    with pytest.raises(ExternalIndexError, match="Nothing was written"):
        table.upsert(batch([("n", 1, "x", "n1")]))
    assert values(table) == ["a1", "b1", "c1", "d1"]
    assert table.state.timeline.pending().instants == ()
    hbase.is_down = False
    assert hbase.entries("keys") == entries
    table.upsert(batch([("n", 1, "x", "n1")]))
    assert values(table) == ["a1", "b1", "c1", "d1", "n1"]
    assert hbase.connections == connections + 1


def test_one_failed_request_is_made_again(hbase: FakeHBase) -> None:
    table, failed = filled(), []

    def fail_once(operation: str) -> None:
        if operation == "get" and not failed:
            failed.append(operation)
            raise TimeoutError("no answer")

    hbase.before = fail_once
    table.upsert(batch([("a", 2, "x", "a2")]))
    assert values(table) == ["a2", "b1", "c1", "d1"]


def test_entries_of_another_table_and_of_none_are_refused(hbase: FakeHBase) -> None:
    table = filled()
    other = empty(root="memory://other")
    with pytest.raises(ExternalIndexError, match=r"has entries that were put as .*lakehouse index rebuild"):
        other.upsert(batch([("a", 1, "x", "a1")]))
    hbase.tables["keys"].clear()
    with pytest.raises(ExternalIndexError, match="nothing says that it has entries of this table"):
        table.upsert(batch([("a", 2, "x", "a2")]))
    assert values(table) == ["a1", "b1", "c1", "d1"]
    assert service.rebuild(table.storage, {}, lock_timeout_ms=1000).entries == 4
    table.upsert(batch([("a", 2, "x", "a2")]))
    check_entries(table, hbase)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_table_of_another_index_gets_this_one(hbase: FakeHBase, table_type: str) -> None:
    table = filled(table_type, properties={})
    table.upsert(batch([("a", 2, "x", "a2"), ("n", 1, "y", "n1")]))
    with pytest.raises(OptionError, match="lakehouse index rebuild t"):
        LocalTable(table.storage, OPTIONS).upsert(batch([("a", 3, "x", "a3")]))
    with pytest.raises(OptionError, match="lakehouse index rebuild t"):
        set_properties(table.storage, OPTIONS, lock_timeout_ms=1000)
    where = {key: value for key, value in OPTIONS.items() if key != "hoodie.index.type"}
    with pytest.raises(OptionError, match=r"'hoodie.index.type' is no option of an HBASE index"):
        service.rebuild(table.storage, OPTIONS, lock_timeout_ms=1000)
    with pytest.raises(MissingOptionError, match=r"needs the option hoodie.index.hbase.table"):
        service.rebuild(table.storage, {}, lock_timeout_ms=1000)
    done = service.rebuild(table.storage, {**where, **FAST}, lock_timeout_ms=1000)
    assert (done.hbase_table, done.entries) == ("keys", 5)
    check_entries(table, hbase)
    hbase.requests.clear()
    table.upsert(batch([("a", 4, "x", "a4"), ("m", 4, "x", "m4")]))
    assert [operation for operation, _ in hbase.requests if operation in ("get", "put")] == ["get", "get", "put"]
    assert values(table) == ["a4", "b1", "c1", "d1", "m4", "n1"]


def test_what_went_without_the_index_for_a_while_is_not_believed_again(hbase: FakeHBase) -> None:
    table = filled()
    set_properties(table.storage, {"hoodie.index.type": "GLOBAL_SIMPLE"}, lock_timeout_ms=1000)
    table.upsert(batch([("n", 1, "x", "n1")]))
    assert "n" not in hbase.entries("keys")
    with pytest.raises(OptionError, match="lakehouse index rebuild t"):
        set_properties(table.storage, {"hoodie.index.type": "HBASE"}, lock_timeout_ms=1000)
    service.rebuild(table.storage, {"hoodie.index.hbase.table": "others"}, lock_timeout_ms=1000)
    table.upsert(batch([("n", 2, "x", "n2")]))
    set_properties(table.storage, {"hoodie.index.hbase.table": "keys"}, lock_timeout_ms=1000)
    with pytest.raises(ExternalIndexError, match="has entries that were put as"):
        table.upsert(batch([("n", 3, "x", "n3")]))
    assert values(table) == ["a1", "b1", "c1", "d1", "n2"]


def test_writes_by_another_index_keep_the_entries(hbase: FakeHBase) -> None:
    table = filled()
    LocalTable(table.storage, {"hoodie.index.type": "GLOBAL_SIMPLE"}).upsert(batch([("a", 2, "x", "a2"), ("n", 1, "x", "n1")]))
    check_entries(table, hbase)
    with pytest.raises(OptionError, match="looks for a key in one partition"):
        LocalTable(table.storage, {"hoodie.index.type": "SIMPLE"}).upsert(batch([("a", 2, "x", "a2")]))
    for key, value in (("hoodie.index.hbase.table", "other"), ("hoodie.index.hbase.get.batch.size", "7")):
        for index in ("HBASE", "GLOBAL_SIMPLE"):
            with pytest.raises(OptionError, match=f"{key} of this write differs from the table's"):
                LocalTable(table.storage, {key: value, "hoodie.index.type": index}).upsert(batch([("a", 2, "x", "a2")]))
    LocalTable(table.storage, {"hoodie.index.hbase.get.batch.size": "100"}).upsert(batch([("a", 4, "x", "a4")]))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_row_whose_file_is_lost_is_not_taken_for_new(hbase: FakeHBase, table_type: str) -> None:
    table = filled(table_type)
    for entry in list(table.storage.walk("part=z")):
        table.storage.delete(entry.path)
    with pytest.raises(MissingFileError):
        table.upsert(batch([("d", 2, "x", "d2")]))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_batch_in_shares_finds_the_same(hbase: FakeHBase, table_type: str) -> None:
    table = filled(table_type)
    shares = LocalTable(table.storage, {"lakehouse.write.broadcast.max.bytes": "0"})
    shares.upsert(batch([("a", 2, "y", "a2"), ("n", 1, "x", "n1"), ("d", 2, "z", "d2")]))
    shares.delete(batch([("b", 2, "x", "")]))
    assert values(table) == ["a2", "c1", "d2", "n1"]
    check_entries(table, hbase)
    assert sorted(hbase.entries("keys")) == ["a", "c", "d", "n"]


def test_a_table_that_is_made_again_at_its_place_takes_the_entries_over(hbase: FakeHBase) -> None:
    filled()
    again = filled(rows=(("a", 1, "z", "again"), ("n", 1, "x", "n1")))
    assert values(again) == ["again", "n1"]
    check_entries(again, hbase)
    again.delete_partitions(["part=z", "part=x"])
    again.upsert(batch([("a", 2, "x", "a2")]))
    assert values(again) == ["a2"]


def test_a_copy_is_refused_until_it_has_entries_of_its_own(hbase: FakeHBase) -> None:
    table = filled()
    other = MemoryStorage("memory://copy")
    for entry in table.storage.walk():
        other.create(entry.path, table.storage.read(entry.path))
    copy = LocalTable(other)
    with pytest.raises(ExternalIndexError, match="it has entries that were put as 'memory://table"):
        copy.upsert(batch([("a", 2, "x", "copy")]))
    service.rebuild(other, {"hoodie.index.hbase.table": "copied"}, lock_timeout_ms=1000)
    copy.upsert(batch([("a", 2, "x", "copy")]))
    table.upsert(batch([("a", 3, "x", "a3")]))
    assert (values(copy), values(table)) == (["b1", "c1", "copy", "d1"], ["a3", "b1", "c1", "d1"])


def test_marks_of_many_partitions_are_of_all_until_the_instant_is_done() -> None:
    many = [str(number) for number in range(1000)]
    state = LocalTable(MemoryStorage())
    create_table(state.storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"]))
    state.upsert(batch(START))
    timeline, (done,) = state.state.timeline, state.instants()
    assert Marks().with_moving(done, many).wrong(timeline) == frozenset()
    assert Marks().with_moving("20200101000000000", many).wrong(timeline) is None
    assert Marks().with_moving("20200101000000000", ["a"]).with_behind(["b"]).wrong(timeline) == {"a", "b"}
    for marks in (Marks("t").with_moving(done, many), Marks("t").with_moving(done, ["a"]).with_behind(many)):
        assert Marks.of(state.state.config.with_properties({"lakehouse.index.hbase": marks.text})) == marks
    assert Marks().text is None
    with pytest.raises(PropertiesError, match="lakehouse index rebuild"):
        Marks.of(state.state.config.with_properties({"lakehouse.index.hbase": "{}"}))


def test_commits_of_a_program_without_entries_are_caught_up(hbase: FakeHBase, caplog: pytest.LogCaptureFixture) -> None:
    table = filled()
    stored = ConfigStore(table.storage)
    kind = f"{STORED_PREFIX}hoodie.index.type"
    stored.update({kind: "GLOBAL_SIMPLE"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakehouse_engine.commit.publish._signed", lambda metadata: metadata)
        table.upsert(batch([("n", 1, "new", "n1")]))
    stored.update({kind: "HBASE"})
    assert "n" not in hbase.entries("keys")
    table.upsert(batch([("n", 2, "new", "n2")]))
    assert values(table) == ["a1", "b1", "c1", "d1", "n2"]
    assert "written by a program that keeps none" in caplog.text
    check_entries(table, hbase)


def test_entries_are_fitted_once_after_a_restore(hbase: FakeHBase) -> None:
    table = filled()
    table.savepoint(name="kept")
    table.delete(batch([("a", 2, "x", "")]))
    table.upsert(batch([("a", 3, "new", "a3")]))
    table.restore("kept")
    assert '"everything": true' in (table.state.config.properties["lakehouse.index.hbase"] or "")
    table.upsert(batch([("a", 4, "x", "a4")]))
    assert values(table) == ["a4", "b1", "c1", "d1"]
    assert '"everything": false' in (table.state.config.properties["lakehouse.index.hbase"] or "")
    check_entries(table, hbase)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("replaces", [False, True])
def test_what_another_program_took_back_has_its_entries_again(hbase: FakeHBase, table_type: str, *, replaces: bool) -> None:
    table = filled(table_type)
    if replaces:
        table.delete_partitions(["part=x", "part=z"])
    else:
        table.delete(batch([("a", 2, "x", ""), ("d", 2, "z", "")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakehouse_engine.commit.participants._ALL", [])
        table.rollback()
    assert sorted(hbase.entries("keys")) == (["c"] if replaces else ["b", "c"])
    table.upsert(batch([("a", 3, "x", "a3"), ("d", 3, "x", "d3")]))
    assert values(table) == ["a3", "b1", "c1", "d3"]
    check_entries(table, hbase)
    hbase.requests.clear()
    table.upsert(batch([("a", 4, "x", "a4")]))
    assert "put" not in [operation for operation, _ in hbase.requests], "it was put again once"


def test_a_write_that_fails_takes_its_entries_back(hbase: FakeHBase, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled()
    before = hbase.entries("keys")

    def fail(*arguments: object) -> None:
        raise OptionError("not today")

    monkeypatch.setattr("lakehouse_engine.commit.publish.completion_time", fail)
    with pytest.raises(OptionError, match="not today"):
        LocalTable(table.storage, MOVES).upsert(batch([("a", 2, "y", "a2"), ("n", 1, "x", "n1")]))
    assert hbase.entries("keys") == before
    assert hbase_index._DONE == {}
    assert '"moving": {}' in (table.state.config.properties["lakehouse.index.hbase"] or "")


def test_requests_are_batched_and_paced() -> None:
    with fake_hbase() as server:
        now, slept = [100.0], []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            now[0] += seconds

        options = HBaseOptions(table="keys", host="h", get_batch=4, put_batch=5, max_qps=10)
        client = HBaseClient(options, pace=Pace(10, clock=lambda: now[0], sleep=sleep))
        client.make_table()
        keys = [f"k{number}" for number in range(12)]
        server.requests.clear()
        client.put(pa.table([keys, ["p"] * 12, ["f"] * 12, ["1"] * 12], schema=ENTRIES))
        assert server.requests == [("put", 5), ("put", 5), ("put", 2)]
        assert slept == pytest.approx([0.5, 0.5])
        found = client.find(pa.array([*keys, "other"]))
        assert found.column("key").to_pylist() == keys
        assert server.requests[3:] == [("get", 4), ("get", 4), ("get", 4), ("get", 1)]
        assert now[0] == pytest.approx(100 + 2.4)
        client.delete(pa.array(keys[:6]))
        assert server.requests[7:] == [("delete", 5), ("delete", 1)]
        assert sorted(server.entries("keys")) == sorted(keys[6:])
        server.tables["keys"][b"k11"] = dict.fromkeys((b"_s:commit_ts", b"_s:file_name", b"_s:partition_path"), b"\xff")
        with pytest.raises(ExternalIndexError, match="not UTF-8"):
            client.find(pa.array(["k11"]))


def test_no_limit_does_not_wait() -> None:
    Pace(0, sleep=lambda seconds: pytest.fail("it waits")).wait(10**9)


@pytest.mark.parametrize("key", ["", "\0a", "k" * (LONGEST + 1)])
def test_keys_that_hbase_does_not_take_are_refused(key: str) -> None:
    with pytest.raises(ExternalIndexError, match="cannot be a row of the HBASE index"):
        row_keys(pa.array([key]))


def test_without_happybase_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "happybase", None)
    with pytest.raises(UnavailableError, match=r"pip install 'dbt-lakehouse\[hbase\]'"):
        happybase_driver()


def test_tables_that_cannot_have_the_index_are_refused(hbase: FakeHBase) -> None:
    with pytest.raises(UnsupportedTableError, match="only tables of version 6 have this index"):
        empty(properties={**OPTIONS, "hoodie.write.table.version": "9"})
    with pytest.raises(MissingOptionError, match=r"needs the option lakehouse.index.hbase.thrift.host"):
        empty(properties={"hoodie.index.type": "HBASE", "hoodie.index.hbase.table": "keys"})
    with pytest.raises(UnsupportedTableError, match="without record key fields"):
        create_table(MemoryStorage(), TableSpec("t", SCHEMA, properties=OPTIONS))
    with pytest.raises(UnavailableError, match="Thrift server"):
        empty(properties={**OPTIONS, "hoodie.index.hbase.zkquorum": "127.0.0.1"})
    with pytest.raises(UnavailableError, match="takes its entries back itself"):
        empty(properties={**OPTIONS, "hoodie.index.hbase.rollback.sync": "true"})
    table = filled()
    with pytest.raises(VersionChangeError, match="only tables of version 6 have an HBASE index"):
        table.change_version(9)
    twice = empty(properties={"hoodie.index.type": "SIMPLE"})
    twice.upsert(batch([("a", 1, "x", "a1")]))
    twice.upsert(batch([("a", 1, "y", "a1")]))
    where = {key: value for key, value in OPTIONS.items() if key != "hoodie.index.type"}
    with pytest.raises(DuplicateKeyError, match="'a' is stored 2 times"):
        service.rebuild(twice.storage, where, lock_timeout_ms=1000)
    buckets = empty(properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    with pytest.raises(OptionError, match="in buckets"):
        service.rebuild(buckets.storage, where, lock_timeout_ms=1000)
