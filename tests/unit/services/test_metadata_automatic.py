"""A table that names no index looks into its files while they are few, and gets a record index once they are many."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.api.describe import describe_table
from lakehouse_engine.commit.publish import Publication
from lakehouse_engine.errors import CommitConflictError, DuplicateKeyError, LakehouseError, OptionError, PropertiesError, StorageError
from lakehouse_engine.index.registry import load_index
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.metadata_table.building import entries
from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.model.commit_metadata import INDEX_KEY
from lakehouse_engine.model.table_config import AUTO_INDEX_KEY
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.services.metadata import automatic
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.write.alter import set_properties
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int64())])
FEW = {"lakehouse.index.auto.files": "2"}
VERSIONS = [6, 9]


def made(
    path: Path, properties: dict[str, str] | None = None, *, version: int = 9, key: tuple[str, ...] = ("id",), kind: str = "cow"
) -> HoodieTable:
    """A table whose writes take two files for few."""
    spec = TableSpec("t", SCHEMA, list(key), [], ["day"], kind, properties={**FEW, **(properties or {})}, version=TableVersion(version))
    create_table(LocalStorage(str(path)), spec)
    return HoodieTable.open(str(path))


def rows(*ids: int, n: int = 0, days: int = 4) -> pa.Table:
    return pa.table([list(ids), [f"d{one % days}" for one in ids], [n] * len(ids)], schema=SCHEMA)


def filled(path: Path, properties: dict[str, str] | None = None, **how: Any) -> HoodieTable:
    """A table with four files, which no write has looked into."""
    table = made(path, properties, **how)
    table.bulk_insert(rows(*range(8)))
    return table


def partitions(table: HoodieTable) -> tuple[str, ...]:
    return HoodieTable.open(table.path).config.metadata_partitions


def reason(table: HoodieTable) -> str:
    return str(describe_table(HoodieTable.open(table.path).state)["index"])


def stored_reason(result: WriteResult, table: HoodieTable) -> str | None:
    state = HoodieTable.open(table.path).state
    (instant,) = (one for one in state.timeline.completed() if one.requested_time == result.instant)
    return state.commit_metadata(instant).extra_metadata.get(INDEX_KEY)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_write_that_finds_many_files_builds_the_index_and_the_next_one_asks_it(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path / "t", version=version, kind=kind)
    assert partitions(table) == ()
    first = table.upsert(rows(1, 9, n=1))
    assert first.index == "GLOBAL_SIMPLE: 4 base files, above 2 (lakehouse.index.auto.files): a record index is built behind the write"
    assert stored_reason(first, table) == first.index
    assert (first.builds_index, first.failed_services) == (True, ())
    assert partitions(table) == ("files", "record_index")
    monkeypatch.setattr(KeyColumnIndex, "tag", lambda *given: pytest.fail("all files were asked"))
    table = HoodieTable.open(table.path)
    second = table.upsert(rows(1, 2, 10, n=2))
    assert (second.inserts, second.updates, second.builds_index) == (1, 2, False)
    assert second.index == "GLOBAL_RECORD_LEVEL_INDEX: the metadata table has a record index, which this engine built by itself"
    assert stored_reason(second, table) == second.index == reason(table)
    assert sorted(table.to_arrow().select(["id", "n"]).to_pylist(), key=lambda row: row["id"]) == [
        {"id": one, "n": 2 if one in (1, 2, 10) else 1 if one == 9 else 0} for one in (*range(8), 9, 10)
    ]
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


def test_a_table_of_few_files_looks_into_them(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.bulk_insert(rows(0, 1))
    result = table.upsert(rows(0, n=1))
    assert result.index == "GLOBAL_SIMPLE: 2 base files, and a record index pays above 2 (lakehouse.index.auto.files)"
    assert partitions(table) == ()
    assert type(load_index(table.state, WriteOptions())) is KeyColumnIndex


def test_writes_that_look_nothing_up_build_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    for result in (table.insert(rows(20)), table.bulk_insert(rows(21)), table.insert_overwrite(rows(22))):
        assert (result.index, result.builds_index) == (None, False)
    assert partitions(table) == ()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"hoodie.metadata.enable": "false"}, "hoodie.metadata.enable=false rules a record index out"),
        (
            {"hoodie.metadata.record.index.enable": "false"},
            "hoodie.metadata.global.record.level.index.enable=false rules a record index out",
        ),
        ({"lakehouse.index.auto.files": "0"}, "lakehouse.index.auto.files=0 rules a record index out"),
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, "asked for by hoodie.index.type"),
    ],
)
def test_an_option_of_a_write_rules_the_index_out(options: dict[str, str], why: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    result = table.upsert(rows(1, n=1), options=options)
    assert str(result.index).endswith(f": {why}")
    assert partitions(table) == ()


def test_a_table_with_an_index_of_its_own_keeps_it(tmp_path: Path) -> None:
    simple = filled(tmp_path / "simple", {"hoodie.index.type": "GLOBAL_SIMPLE"})
    buckets = filled(tmp_path / "buckets", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    for table, name in ((simple, "GLOBAL_SIMPLE"), (buckets, "BUCKET")):
        assert table.upsert(rows(1, n=1)).index == f"{name}: asked for by hoodie.index.type"
        assert partitions(table) == ()


def test_a_table_gets_the_choice_by_its_properties(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", {"hoodie.index.type": "GLOBAL_SIMPLE"})
    set_properties(table.storage, {"hoodie.index.type": "AUTO"}, lock_timeout_ms=1000)
    assert HoodieTable.open(table.path).upsert(rows(1, n=1)).builds_index
    assert "record_index" in partitions(table)


def test_generated_keys_and_missing_meta_columns_keep_to_files(tmp_path: Path) -> None:
    keyless, bare = filled(tmp_path / "keyless", key=()), made(tmp_path / "bare")
    ConfigStore(bare.storage).update({"hoodie.populate.meta.fields": "false"})
    assert reason(keyless) == "GLOBAL_SIMPLE: its keys are generated"
    assert reason(bare) == "GLOBAL_SIMPLE: a table without meta columns has no record index"


@pytest.mark.parametrize("with_files", [False, True])
def test_a_table_with_a_key_twice_stays_with_files_and_remembers_it(
    with_files: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = filled(tmp_path / "t")
    table.bulk_insert(rows(1))
    if with_files:
        table.rebuild_metadata(["files"])
    with caplog.at_level(logging.WARNING):
        result = table.upsert(rows(2, n=1))
    assert result.builds_index
    assert result.failed_services == ()
    assert "keeps looking for keys in its files" in caplog.text
    assert partitions(table) == (("files",) if with_files else ())
    assert LocalStorage(table.path).list(METADATA_TABLE) == [] or with_files
    table = HoodieTable.open(table.path)
    for number in range(12):  # the metadata table is compacted in between
        again = table.upsert(rows(3, n=number))
    assert again.index == "GLOBAL_SIMPLE: keys are stored more than once, and a record index has one place for each"
    assert (again.builds_index, again.failed_services) == (False, ())
    if with_files:
        assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_insert_of_a_stored_key_ends_the_chosen_index_and_not_the_write(
    version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = filled(tmp_path / "t", version=version)
    table.upsert(rows(1, n=1))
    table = HoodieTable.open(table.path)
    with caplog.at_level(logging.WARNING):
        assert table.bulk_insert(rows(1, n=5)).inserts == 1
    assert "twice, for which it has no place" in caplog.text
    assert partitions(table) == ("files",)
    assert HoodieTable.open(table.path).to_arrow().num_rows == 9
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()
    assert reason(table).endswith("keys are stored more than once, and a record index has one place for each")


@pytest.mark.parametrize("asked", [False, True])
def test_so_does_a_row_that_is_put_in_the_place_of_another(asked: bool, tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    if asked:
        table.create_index("record_index")
    table.upsert(rows(1, n=1))
    table = HoodieTable.open(table.path)
    other = table.to_arrow(meta_columns=True).filter(pc.not_equal(pc.field("_hoodie_record_key"), "1")).slice(0, 1)
    stored = table.to_arrow().num_rows
    if asked:
        with pytest.raises(DuplicateKeyError, match="one place for a key"):
            table.replace_rows(rows(1, n=5), replaced=other)
    else:
        table.replace_rows(rows(1, n=5), replaced=other)
    table = HoodieTable.open(table.path)
    assert ("record_index" in partitions(table), table.to_arrow().num_rows) == (asked, stored)
    assert table.to_arrow(filters=pc.field("id") == 1).num_rows == (1 if asked else 2)
    assert check_metadata_table(table.state).findings == ()


def test_an_insert_of_a_stored_key_is_refused_where_the_index_was_asked_for(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.create_index("record_index")
    with pytest.raises(DuplicateKeyError, match="one place for a key"):
        table.bulk_insert(rows(1, n=5))
    assert "record_index" in partitions(table)


@pytest.mark.parametrize("asked", [{"hoodie.index.type": "RECORD_INDEX"}, {"hoodie.metadata.global.record.level.index.enable": "true"}])
def test_it_is_refused_where_the_write_itself_asks_for_the_index(asked: dict[str, str], tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.upsert(rows(1, n=1))
    with pytest.raises(DuplicateKeyError, match="one place for a key"):
        HoodieTable.open(table.path).bulk_insert(rows(1, n=5), options=asked)
    assert "record_index" in partitions(table)
    assert HoodieTable.open(table.path).config.auto_index.word == "BUILT"


@pytest.mark.parametrize("version", VERSIONS)
def test_if_the_write_fails_after_that_the_other_indexes_stay(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path / "t", version=version)
    table.upsert(rows(1, n=1))
    table.create_index("column_stats")

    def full(*_: object) -> None:
        raise StorageError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "_complete", full)
        with pytest.raises(StorageError, match="no room"):
            HoodieTable.open(table.path).bulk_insert(rows(1, n=5))
    assert partitions(table) == ("column_stats", "files")
    assert HoodieTable.open(table.path).upsert(rows(1, n=6)).updates == 1
    assert partitions(table) == ("column_stats", "files")
    assert check_metadata_table(HoodieTable.open(table.path).state).findings == ()


def test_a_secondary_index_keeps_the_chosen_index(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.upsert(rows(1, n=1))
    table.create_index("by_n", columns=["n"])
    with pytest.raises(DuplicateKeyError):
        HoodieTable.open(table.path).bulk_insert(rows(1, n=5))


@pytest.mark.parametrize("whole", [False, True])
def test_what_is_dropped_on_request_stays_dropped_until_it_is_asked_for(whole: bool, tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.upsert(rows(1, n=1))
    assert table.drop_index("record_index", dry_run=True).dropped == ("record_index",)
    assert HoodieTable.open(table.path).config.auto_index.word == "BUILT"
    if whole:
        table.drop_metadata()
    else:
        assert table.drop_index("record_index").dropped == ("record_index",)
    assert table.drop_index("record_index", if_exists=True).dropped == ()
    table = HoodieTable.open(table.path)
    result = table.upsert(rows(2, n=1))
    assert (
        result.index
        == "GLOBAL_SIMPLE: its index was dropped on request; `lakehouse index create T record_index` builds it again"
    )
    assert "record_index" not in partitions(table)
    table.create_index("record_index")
    assert AUTO_INDEX_KEY not in HoodieTable.open(table.path).config.properties
    assert reason(table) == "GLOBAL_RECORD_LEVEL_INDEX: the metadata table has a record index"


@pytest.mark.parametrize("partitions", [["record_index"], ["files"], None])
def test_a_drop_of_what_there_is_not_changes_no_choice(partitions: list[str] | None, tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    before = (tmp_path / "t/.hoodie/hoodie.properties").read_bytes()
    if partitions is None:
        assert table.drop_metadata().dropped == ()
    else:
        with pytest.raises(OptionError, match="no partition"):
            table.drop_metadata(partitions)
    assert (tmp_path / "t/.hoodie/hoodie.properties").read_bytes() == before
    assert table.upsert(rows(1, n=1)).builds_index


def test_an_index_that_another_program_dropped_is_built_again_after_ten_commits(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    table.upsert(rows(1, n=1))
    ConfigStore(table.storage).update({"hoodie.table.metadata.partitions": "files"})
    table.storage.delete_tree(f"{METADATA_TABLE}/record_index")
    table = HoodieTable.open(table.path)
    results = [table.upsert(rows(1, n=number)) for number in range(12)]
    assert [number for number, one in enumerate(results) if one.builds_index] == [10]
    assert "its record index is gone" in str(results[0].index)
    assert "record_index" in partitions(table)


def test_a_large_table_is_told_the_command(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = filled(tmp_path / "t", {"lakehouse.index.auto.max.keys": "7"})
    with caplog.at_level(logging.WARNING):
        result = table.upsert(rows(1, n=1))
        table.upsert(rows(1, n=2))
    assert not result.builds_index
    assert "about 8 keys in 4 base files" in str(result.index)
    assert "`lakehouse index create T record_index` builds it" in str(result.index)
    assert len([one for one in caplog.records if "builds it" in one.getMessage()]) == 1
    assert partitions(table) == ()


def test_nothing_is_built_beside_others_and_the_next_write_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path / "t")
    state = table.state

    def busy(*given: Any, **more: Any) -> Any:
        assert more["alone_ms"] == 0
        raise CommitConflictError("another writer is at work")

    monkeypatch.setattr(automatic, "locked_table", busy)
    assert not automatic.build_record_index(state, lock_timeout_ms=1000)
    monkeypatch.undo()
    assert partitions(table) == ()
    assert table.upsert(rows(1, n=1)).builds_index
    assert "record_index" in partitions(table)


def test_a_build_that_fails_fails_no_write_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(tmp_path / "t")

    def broken(*given: Any, **more: Any) -> Any:
        raise LakehouseError("the disk is full")

    monkeypatch.setattr(entries, "row_locations", broken)
    result = table.upsert(rows(1, n=1))
    assert "the disk is full" in result.failed_services[0]
    monkeypatch.undo()
    assert HoodieTable.open(table.path).config.auto_index.word == ""
    assert HoodieTable.open(table.path).upsert(rows(1, n=2)).builds_index
    assert "record_index" in partitions(table)


def lost(table: HoodieTable, path: str) -> None:
    """Remove the newest base file of a partition whose file group has an older one."""
    pieces = HoodieTable.open(table.path).state.view.latest_slices(path)
    (Path(table.path) / max(piece.base_file.path for piece in pieces if piece.base_file is not None)).unlink()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_lost_file_stops_the_writes_whose_keys_are_in_its_partition(kind: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", kind=kind)
    table.create_index("record_index")
    table = HoodieTable.open(table.path)
    table.upsert(rows(3, n=1), options={"hoodie.clean.automatic": "false"})
    lost(table, "day=d3")
    for moved in (rows(3, n=2), rows(7, n=2, days=3)):  # the second comes from the partition, and goes to another
        with pytest.raises(LakehouseError, match="day=d3"):
            HoodieTable.open(table.path).upsert(moved)
    with pytest.raises(LakehouseError, match="day=d3"):
        HoodieTable.open(table.path).delete(pa.table({"id": [7]}))
    assert HoodieTable.open(table.path).upsert(rows(0, n=2)).updates == 1
    for options in ({"lakehouse.write.broadcast.max.bytes": "1"}, {"hoodie.index.type": "GLOBAL_SIMPLE"}):
        with pytest.raises(LakehouseError, match="day=d3"):
            HoodieTable.open(table.path).upsert(rows(0, n=2), options=options)


def test_a_damaged_property_is_named(tmp_path: Path) -> None:
    table = filled(tmp_path / "t")
    ConfigStore(table.storage).update({AUTO_INDEX_KEY: "PERHAPS"})
    with pytest.raises(PropertiesError, match="PERHAPS"):
        HoodieTable.open(table.path).upsert(rows(1, n=1))
