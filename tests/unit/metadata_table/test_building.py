"""A metadata table that is built says what its table says; a build that dies leaves nothing that counts, and the next one is right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import OptionError, RecordKeyError, StorageError, UnsupportedTableError
from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.format.metadata_table.schema import record_schema
from lakehouse_engine.metadata_table.answers import LOCATED, all_record_locations
from lakehouse_engine.metadata_table.building import entries
from lakehouse_engine.metadata_table.building.build import build, check_partitions
from lakehouse_engine.metadata_table.building.drop import drop
from lakehouse_engine.metadata_table.building.groups import record_index_groups
from lakehouse_engine.metadata_table.building.sorting import SortedLocations
from lakehouse_engine.metadata_table.definitions import stored_definitions
from lakehouse_engine.metadata_table.partitions import group_numbers
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
ALL = ("column_stats", "bloom_filters", "record_index")
KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")]


def rows(ids: range, value: float) -> pa.Table:
    return pa.table({"id": list(ids), "p": [f"p{number % 3}" for number in ids], "x": [value] * len(ids)}, schema=SCHEMA)


def made(folder: Path, version: int = 9, kind: str = "cow", *, partitioned: bool = True) -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["p"] if partitioned else [], table_type=kind, version=TableVersion(version))
    create_table(LocalStorage(str(folder)), spec)
    table = HoodieTable.open(str(folder))
    table.insert(rows(range(40), 1.0))
    table.upsert(rows(range(30, 50), 2.0))
    table.delete(rows(range(5), 0.0).select(["id", "p"]))
    return table


def wanted(version: int) -> tuple[str, ...]:
    return ALL if version == 6 else (*ALL, "partition_stats")


def state_of(table: HoodieTable, storage: Storage | None = None) -> TableState:
    return TableState.load(storage or table.state.storage)


def built(state: TableState, partitions: tuple[str, ...]) -> TableState:
    return build(state, partitions, table_clock(state))


def check(table: HoodieTable, partitions: set[str]) -> None:
    report = check_metadata_table(state_of(table))
    assert report.findings == ()
    assert set(report.partitions) == partitions
    assert report.files > 0


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_what_is_built_agrees_with_the_table(version: int, kind: str, tmp_path: Path) -> None:
    table = made(tmp_path, version, kind)
    built(state_of(table), wanted(version))
    check(table, {"files", *wanted(version)})
    found = pa.concat_tables(list(all_record_locations(MetadataTable.open(state_of(table)))))
    assert sorted(map(int, found["key"].to_pylist())) == list(range(5, 50))


@pytest.mark.parametrize("version", [6, 9])
def test_partitions_are_added_one_by_one(version: int, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    there = {"files"}
    for partition in wanted(version):
        built(state_of(table), (partition,))
        there.add(partition)
        check(table, there)
    before = {path: path.read_bytes() for path in (tmp_path / METADATA_TABLE).rglob("*") if path.is_file()}
    built(state_of(table), wanted(version))
    assert {path: path.read_bytes() for path in (tmp_path / METADATA_TABLE).rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_without_partitions_and_one_without_rows(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "a", version, partitioned=False)
    built(state_of(table), ALL)
    check(table, {"files", *ALL})
    create_table(LocalStorage(str(tmp_path / "b")), TableSpec("b", SCHEMA, ["id"], partition_by=["p"], version=TableVersion(version)))
    built(TableState.load(LocalStorage(str(tmp_path / "b"))), ALL)
    report = check_metadata_table(TableState.load(LocalStorage(str(tmp_path / "b"))))
    assert (report.findings, report.files, report.keys) == ((), 0, 0)


def test_definitions_are_put_beside_those_that_are_there(tmp_path: Path) -> None:
    table = made(tmp_path)
    built(state_of(table), ("column_stats",))
    path = tmp_path / ".hoodie" / ".index_defs" / "index.json"
    other = '"secondary_index_a": {"indexName": "secondary_index_a", "indexType": "secondary_index", "kept": 1}'
    path.write_text(path.read_text().replace('"indexDefinitions": {', f'"indexDefinitions": {{ {other},'))
    built(state_of(table), ("record_index",))
    defined = stored_definitions(state_of(table))
    assert set(defined) == {"secondary_index_a", "column_stats", "record_index"}
    assert defined["column_stats"].source_fields == ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", "id", "p", "x")
    assert '"kept": 1' in path.read_text()
    drop(state_of(table), ["column_stats"])
    assert set(stored_definitions(state_of(table))) == {"secondary_index_a", "record_index"}


def test_dropping_takes_what_depends_on_it_too(tmp_path: Path) -> None:
    table = made(tmp_path)
    built(state_of(table), wanted(9))
    assert drop(state_of(table), ["column_stats"]) == ("column_stats", "partition_stats")
    check(table, {"files", "bloom_filters", "record_index"})
    assert {path.name for path in (tmp_path / METADATA_TABLE).iterdir()} == {".hoodie", "files", "bloom_filters", "record_index"}
    with pytest.raises(OptionError, match="has no partition 'column_stats'"):
        drop(state_of(table), ["column_stats"])
    built(state_of(table), wanted(9))
    check(table, {"files", *wanted(9)})
    assert drop(state_of(table)) == ("bloom_filters", "column_stats", "files", "partition_stats", "record_index")
    assert not (tmp_path / METADATA_TABLE).exists()
    assert state_of(table).config.metadata_partitions == ()


@pytest.mark.parametrize(
    ("version", "partitions", "message"),
    [
        (6, ["partition_stats", "column_stats"], "table versions 8 and 9"),
        (9, ["partition_stats"], "name both"),
        (9, ["secondary"], "'secondary'"),
    ],
)
def test_partitions_that_a_table_cannot_have_are_refused(version: int, partitions: list[str], message: str, tmp_path: Path) -> None:
    table = made(tmp_path, version)
    with pytest.raises(OptionError, match=message):
        check_partitions(state_of(table), partitions)


def test_a_record_index_for_each_partition_is_left_to_hudi(tmp_path: Path) -> None:
    table = made(tmp_path)
    built(state_of(table), ("record_index",))
    path = tmp_path / ".hoodie" / ".index_defs" / "index.json"
    path.write_text(path.read_text().replace('"isPartitioned": "false"', '"isPartitioned": "true"'))
    with pytest.raises(UnsupportedTableError, match="only Hudi builds"):
        check_partitions(state_of(table), ["record_index"])


@dataclass
class Dying:
    """A storage that fails from its `left`th change on."""

    inner: Storage
    left: int

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in ("create", "overwrite", "delete", "delete_tree", "open_output"):
            return found

        def changed(*arguments: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise StorageError("the process died here")
            return found(*arguments)

        return changed

    def below(self, path: str) -> Dying:
        return _Below(LocalStorage(self.inner.uri(path).removeprefix("file://")), self)


class _Below(Dying):
    def __init__(self, inner: Storage, above: Dying) -> None:
        self.inner, self.above = inner, above

    @property
    def left(self) -> int:
        return self.above.left

    @left.setter
    def left(self, value: int) -> None:
        self.above.left = value


def dies(table: HoodieTable, partitions: tuple[str, ...], left: int) -> bool:
    """Whether a build dies that may make so many changes."""
    try:
        built(state_of(table, Dying(table.state.storage, left)), partitions)
    except StorageError:
        return True
    return False


@pytest.mark.parametrize(("version", "before"), [(6, ()), (9, ()), (9, ("bloom_filters",))])
def test_a_build_that_dies_anywhere_is_made_good_by_the_next(version: int, before: tuple[str, ...], tmp_path: Path) -> None:
    table = made(tmp_path, version)
    built(state_of(table), before)
    partitions = tuple(name for name in wanted(version) if name not in before)
    left = 0
    while dies(table, partitions, left):
        left += 5
        named = set(state_of(table).config.metadata_partitions)
        if named:
            check(table, named)
        built(state_of(table), partitions)
        check(table, {"files", *partitions, *before})
        drop(state_of(table))
        built(state_of(table), before)
    assert left > 30


def located(keys: list[str], place: int) -> pa.Table:
    count = len(keys)
    return pa.table([keys, ["p"] * count, [f"f{place}-0"] * count, [place] * count], schema=LOCATED)


@pytest.mark.parametrize("limit", [1, 4000, 1 << 30])
@pytest.mark.parametrize("groups", [1, 3])
def test_keys_are_sorted_whatever_fits_in_memory(limit: int, groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse_engine.metadata_table.building.sorting._STEP", 7)
    keys = [f"k{number:04d}" for number in np.random.default_rng(7).permutation(1000)]
    entries = SortedLocations(record_schema(TableVersion.NINE), groups, SpillTo(LocalStorage(str(tmp_path)), "runs", limit))
    for place in range(10):
        entries.add(located(keys[place * 100 : place * 100 + 100], place))
    found = [[key for cells in group for key in cells.keys.to_pylist()] for group in entries.by_group()]
    assert all(group == sorted(group) for group in found)
    assert sorted(key for group in found for key in group) == sorted(key.encode() for key in keys)
    assert all((group_numbers(pa.array(group), groups) == number).all() for number, group in enumerate(found))
    assert len(list(tmp_path.glob("runs/*"))) == (0 if limit > 10_000 else 10 if limit == 1 else len(list(tmp_path.glob("runs/*"))))


@pytest.mark.parametrize("limit", [1, 1 << 30])
def test_a_key_that_is_there_twice_is_refused(limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse_engine.metadata_table.building.sorting._STEP", 1)
    entries = SortedLocations(record_schema(TableVersion.NINE), 1, SpillTo(LocalStorage(str(tmp_path)), "runs", limit))
    entries.add(located(["a", "b"], 0))
    entries.add(located(["b", "c"], 1))
    with pytest.raises(RecordKeyError, match="'b'"):
        [list(group) for group in entries.by_group()]


def test_groups_of_a_record_index_are_hudis_from_a_million_keys_on() -> None:
    assert [record_index_groups(keys) for keys in (0, 999_999, 1_000_000, 10**9, 10**13)] == [1, 1, 10, 89, 10_000]


def test_a_record_index_of_a_table_with_a_key_twice_is_not_named(tmp_path: Path) -> None:
    table = made(tmp_path)
    HoodieTable.open(str(tmp_path), options={"hoodie.parquet.small.file.limit": 0}).bulk_insert(rows(range(40, 41), 3.0))
    with pytest.raises(RecordKeyError, match="'40'"):
        built(state_of(table), ("column_stats", "record_index"))
    check(table, {"files", "column_stats"})
    assert not list((tmp_path / ".hoodie" / ".temp").glob("lakehouse.metadata.build*"))


def test_runs_are_removed_with_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "_SORTED_AT_ONCE", 1)
    table = made(tmp_path)
    built(state_of(table), ("record_index",))
    check(table, {"files", "record_index"})
    assert not list((tmp_path / ".hoodie" / ".temp").glob("lakehouse.metadata.build*"))
