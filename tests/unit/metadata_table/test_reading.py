"""Which blocks of a metadata table count, and how its partitions are looked up, over ranges of a storage without local files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptLogError, DuplicateKeyError, FormatError, MissingFileError, UnavailableError
from lakehouse_engine.format.log.writer import render_rollback
from lakehouse_engine.format.metadata_table.bloom_filters import secondary_index_payload
from lakehouse_engine.format.metadata_table.keys import secondary_keys
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, location_payloads
from lakehouse_engine.metadata_table.answers import record_keys_of, record_locations
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.partitions import group_numbers
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.upkeep.locations import KeyMoves
from lakehouse_engine.metadata_table.upkeep.one_place import check_one_place
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.metadata_tables import BUILD, MetadataTableBuilder, delete_block, put_block

T1, T2, T3 = ("20260101000000001", "20260101000000002", "20260101000000003")
GROUP = "record-index-0000-0"
pytestmark = pytest.mark.table_versions(6)


def locations(file_ids: dict[str, str], partition: str = "p") -> tuple[pa.Array, pa.Table]:
    rows = pa.table([[partition] * len(file_ids), list(file_ids.values()), [0] * len(file_ids)], schema=LOCATIONS)
    return pa.array(list(file_ids), pa.string()), location_payloads(rows)


@pytest.fixture
def storage() -> MemoryStorage:
    found = MemoryStorage()
    schema = pa.schema([("id", pa.string()), ("v", pa.int64())])
    create_table(found, TableSpec(name="t", schema=schema, record_key=("id",)))
    return found


@pytest.fixture
def index(storage: MemoryStorage) -> MetadataTableBuilder:
    """A record index of one group whose base file has `a` and `b` in file `base`."""
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    builder.base(GROUP, *locations({"a": "base", "b": "base"}))
    builder.publish(BUILD)
    return builder


def found(table: MetadataTable, *keys: str) -> dict[str, str]:
    located = record_locations(table, pa.array(keys or ("a", "b", "c"), pa.string()))
    return dict(zip(located["key"].to_pylist(), located["file_id"].to_pylist(), strict=True))


def test_logs_go_over_the_base_file_in_order(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, put_block(T1, *locations({"a": "first", "c": "first"})), instant=T1)
    index.publish(T1)
    index.log(GROUP, 2, put_block(T2, *locations({"c": "second"})), delete_block(T2, ["a"], "record_index"), instant=T2)
    index.publish(T2)
    assert found(index.open()) == {"b": "base", "c": "second"}


def test_a_key_that_is_put_after_it_was_deleted_is_there(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, delete_block(T1, ["a"], "record_index"), instant=T1)
    index.publish(T1)
    index.log(GROUP, 2, put_block(T2, *locations({"a": "again"})), instant=T2)
    index.publish(T2)
    assert found(index.open()) == {"a": "again", "b": "base"}


def test_what_is_not_completed_in_the_metadata_table_does_not_count(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, put_block(T1, *locations({"a": "lost"})), instant=T1)
    assert found(index.open()) == {"a": "base", "b": "base"}


def test_what_is_pending_in_the_data_table_does_not_count(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, put_block(T1, *locations({"a": "early"})), instant=T1)
    index.publish(T1)
    index.storage.create(f".hoodie/{T1}.commit.requested", b"")
    assert found(index.open()) == {"a": "base", "b": "base"}


def test_what_a_rollback_block_takes_back_does_not_count(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, put_block(T1, *locations({"a": "undone"})), instant=T1)
    index.publish(T1)
    index.log(GROUP, 2, render_rollback(T2, T1), instant=T2)
    index.publish(T2)
    assert found(index.open()) == {"a": "base", "b": "base"}


def test_a_file_that_its_commit_does_not_name_does_not_count(index: MetadataTableBuilder) -> None:
    index.log(GROUP, 1, put_block(T1, *locations({"a": "named"})), instant=T1)
    index.log(GROUP, 2, put_block(T1, *locations({"a": "stray"})), instant=T1, named=False)
    index.publish(T1)
    assert found(index.open()) == {"a": "named", "b": "base"}


def test_damage_of_a_completed_delta_commit_is_an_error_and_other_damage_is_passed_over(index: MetadataTableBuilder) -> None:
    block = put_block(T1, *locations({"a": "x"}))
    path = index.log(GROUP, 1, block[:-1], instant=T1)
    assert found(index.open()) == {"a": "base", "b": "base"}
    index.publish(T1)
    with pytest.raises(CorruptLogError, match="damaged at byte 0") as error:
        found(index.open())
    assert error.value.context["path"] == path.removeprefix(".hoodie/metadata/")


@pytest.fixture
def moved(index: MetadataTableBuilder) -> str:
    """Path of a log file by which `a` is elsewhere."""
    path = index.log(GROUP, 1, put_block(T1, *locations({"a": "moved"})), instant=T1)
    index.publish(T1)
    assert found(index.open()) == {"a": "moved", "b": "base"}
    return path


def test_a_log_file_that_is_gone_is_an_error_that_names_it(index: MetadataTableBuilder, moved: str) -> None:
    index.storage.delete(moved)
    with pytest.raises(MissingFileError, match=r"log\.1.*metadata rebuild"):
        found(index.open())


def test_a_log_file_that_is_gone_counts_for_nothing_while_its_instant_is_pending(index: MetadataTableBuilder, moved: str) -> None:
    """Whoever takes the instant back removes the files first."""
    index.storage.delete(moved)
    index.storage.create(f".hoodie/{T1}.commit.requested", b"")
    assert found(index.open()) == {"a": "base", "b": "base"}


def test_a_base_file_that_is_gone_is_an_error_that_names_it(index: MetadataTableBuilder) -> None:
    index.storage.delete(f".hoodie/metadata/record_index/{GROUP}_0-0-0_{BUILD}.hfile")
    with pytest.raises(MissingFileError, match=GROUP):
        found(index.open())


def test_no_bit_of_a_blocks_instant_makes_it_another_commits(index: MetadataTableBuilder, moved: str) -> None:
    whole = index.storage.read(moved)
    at = whole.index(T1.encode())
    for place in range(at, at + len(T1)):
        for bit in range(8):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            index.storage.overwrite(moved, bytes(content))
            with pytest.raises(CorruptLogError, match="metadata rebuild"):
                found(index.open())


def test_a_damaged_base_file_is_named(index: MetadataTableBuilder) -> None:
    path = f".hoodie/metadata/record_index/{GROUP}_0-0-0_{BUILD}.hfile"
    content = bytearray(index.storage.read(path))
    content[60] ^= 0xFF
    index.storage.overwrite(path, bytes(content))
    with pytest.raises(FormatError, match=GROUP):
        found(index.open())


def test_groups_are_asked_for_the_keys_that_are_hashed_to_them(storage: MemoryStorage) -> None:
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    keys = [f"key-{number}" for number in range(50)]
    for group in range(3):
        mine = [key for key, number in zip(keys, group_numbers(pa.array(keys), 3), strict=True) if number == group]
        builder.base(f"record-index-{group:04d}-0", *locations(dict.fromkeys(mine, f"f{group}")))
    builder.publish(BUILD)
    assert found(builder.open(), *keys, "absent") == {key: f"f{n}" for key, n in zip(keys, group_numbers(pa.array(keys), 3), strict=True)}


def test_a_partitioned_index_has_a_key_once_in_each_partition(storage: MemoryStorage) -> None:
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    for name, path in (("p%3D1", "p=1"), ("p%3D2", "p=2")):
        builder.base(f"record-index-{name}-0000-0", *locations({"a": f"file of {path}"}, path))
    builder.publish(BUILD)
    table = builder.open()
    asked = pa.array(["a", "b"])
    assert sorted(record_locations(table, asked)["file_id"].to_pylist()) == ["file of p=1", "file of p=2"]
    assert record_locations(table, asked, "p=2")["file_id"].to_pylist() == ["file of p=2"]
    assert record_locations(table, asked, "p=3").num_rows == 0


@pytest.mark.parametrize("operation", [WriteOperationType.INSERT, WriteOperationType.UPSERT])
def test_its_upkeep_refuses_a_key_twice_in_a_partition_alone(storage: MemoryStorage, operation: WriteOperationType) -> None:
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    for name, path in (("p%3D1", "p=1"), ("p%3D2", "p=2")):
        builder.base(f"record-index-{name}-0000-0", *locations({"a": f"file of {path}"}, path))
    builder.publish(BUILD)
    table, metadata = builder.open(), HoodieCommitMetadata(operation_type=operation)
    names = ["key", "partition_path", "file_id"]
    put = pa.table([["a", "a", "b", "b"], ["p=2", "p=3", "p=1", "p=2"], ["file of p=2", "n", "n", "n"]], names=names)
    moves = KeyMoves(put=[put])
    parts = moves.by_partition()
    assert list(parts) == ["p=1", "p=2", "p=3"]
    for path, part in parts.items():
        check_one_place(table, metadata, part, path)
    other = KeyMoves(put=[pa.table([["a"], ["p=2"], ["other"]], names=names)])
    with pytest.raises(DuplicateKeyError, match="stored in the partition 'p=2'"):
        check_one_place(table, metadata, other, "p=2")
    twice = KeyMoves(put=[pa.table([["c", "c"], ["p=2", "p=2"], ["one", "two"]], names=names)])
    with pytest.raises(DuplicateKeyError, match="brings twice"):
        check_one_place(table, metadata, twice, "p=2")
    other.gone.append(pa.table([["a"], ["p=2"], ["file of p=2"]], names=names))
    check_one_place(table, metadata, other, "p=2")


def test_a_secondary_index_says_which_records_have_a_value(storage: MemoryStorage) -> None:
    name = "secondary_index_idx_v"
    builder = MetadataTableBuilder(storage).begin("files", name)
    keys = secondary_keys(pa.array(["x", "x", "x$", None]), pa.array(["1", "2", "3", "4"]))
    builder.base("secondary-index-idx-v-0000-0", keys, secondary_payload(4), partition=name)
    builder.publish(BUILD)
    table = builder.open()
    assert sorted(record_keys_of(table, name, ["x"])["key"].to_pylist()) == ["1", "2"]
    assert record_keys_of(table, name, [None]).to_pylist() == [{"value": None, "key": "4"}]
    assert record_keys_of(table, name, ["absent"]).num_rows == 0


def secondary_payload(count: int) -> pa.Table:
    """Of version 6, which has no record of that type: the type alone."""
    return secondary_index_payload(count).select(["type"])


def test_partitions_that_are_not_complete_cannot_be_asked(index: MetadataTableBuilder, storage: MemoryStorage) -> None:
    with pytest.raises(UnavailableError, match="bloom_filters"):
        index.open().groups("bloom_filters")
    other = MemoryStorage("memory://other")
    create_table(other, TableSpec(name="o", schema=pa.schema([("id", pa.string())]), record_key=("id",)))
    with pytest.raises(UnavailableError, match="no metadata table"):
        MetadataTable.open(TableState.load(other))


def test_writes_after_the_build_are_unknown_until_the_metadata_table_has_them(storage: MemoryStorage) -> None:
    table = HoodieTable(storage)
    rows = pa.table({"id": ["a"], "v": pa.array([1], pa.int64())})
    first = table.upsert(rows).instant
    builder = MetadataTableBuilder(storage).begin("files")
    builder.base("files-0000-0", pa.array([], pa.string()), pa.table({"type": pa.array([], pa.int32())}), instant=f"{first}010")
    builder.publish(f"{first}010")
    assert unknown_instants(builder.open()) == []
    storage.create(".hoodie/20991231000000000.commit", storage.read(f".hoodie/{first}.commit"))
    assert [one.requested_time for one in unknown_instants(builder.open())] == ["20991231000000000"]
    builder.publish("20991231000000000")
    assert unknown_instants(builder.open()) == []
