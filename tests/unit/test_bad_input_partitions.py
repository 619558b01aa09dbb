"""Partition values and links: nothing is ever written, read or deleted outside of the table's directory."""

from __future__ import annotations

import shutil
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError, OptionError, PartitionValueError, StorageError
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import files_below, make_table, refused, rows_of

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])
VALUES = [
    "../../x", "../../../../tmp/evil", "..", ".", "/abs", "a/../b", "a/./b", "a//b", "a/", "%2e%2e%2f", "%2E%2E", "..\\", "..\\..\\x",
    "trailing ", " leading", "", "__HIVE_DEFAULT_PARTITION__", ".hoodie", ".hoodie/metadata", ".HOODIE", ".hoodie_partition_metadata",
    "nul\0", "line\nbreak", "tab\t", "\x7f", "x" * 255, "x" * 300, "é" * 130, "a=b", "=", "100%", "%41", "a:b", "a#b", "a?b", "a*b",
    "'quoted'", '"', "[x]", "{x}", "^", "🙂", unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"), "-rf", "~", "$HOME",
]  # fmt: skip


def batch(*values: str | None) -> pa.Table:
    return pa.table({"id": [f"{index}" for index in range(len(values))], "part": values}, schema=SCHEMA)


@pytest.fixture(params=[(True, True), (False, True), (True, False), (False, False)], ids=["hive+url", "url", "hive", "plain"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    hive_style, url_encode = request.param
    outer = tmp_path / "a" / "b" / "c"
    outer.mkdir(parents=True)
    properties = {"hoodie.datasource.write.partitionpath.urlencode": str(url_encode).lower()}
    made = make_table(outer / "t", SCHEMA, partition_by=("part",), hive_style=hive_style, properties=properties)
    made.insert(pa.table({"id": ["kept"], "part": ["kept"]}, schema=SCHEMA))
    return made


@pytest.mark.parametrize("write", ["upsert", "bulk_insert", "insert_overwrite"])
def test_each_value_is_refused_or_comes_back_and_stays_in_the_table(table: HoodieTable, tmp_path: Path, write: str) -> None:
    root = Path(table.path)
    held: dict[str, str | None] = {"kept": "kept"}
    for number, value in enumerate(VALUES):
        rows = pa.table({"id": [f"v{number}"], "part": [value]}, schema=SCHEMA)
        before = files_below(tmp_path)
        try:
            getattr(table, write)(rows)
        except PartitionValueError:
            assert files_below(tmp_path) == before, value
        else:
            held[f"v{number}"] = value
            new = [Path(path).relative_to(root) for path in set(files_below(tmp_path)) - set(before)]
            assert all(".." not in path.parts for path in new)
            assert [path for path in new if path.suffix == ".parquet" and path.parts[0] != ".hoodie"], value
    found = {key: row["part"] for key, row in rows_of(table).items()}
    # Two values that share a directory (null and empty, say) overwrite each other: what is there is then the later one.
    expected = held if write != "insert_overwrite" else {key: held[key] for key in found}
    assert found == expected
    assert len(found) > len(VALUES) / 3
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert {path.name for path in root.parent.iterdir()} == {"t"}


def test_null_and_empty_come_back_as_they_are(table: HoodieTable) -> None:
    table.upsert(batch(None, ""))
    assert [rows_of(table)[key]["part"] for key in "01"] == [None, ""]


@pytest.mark.parametrize("path", ["..", "../..", "/etc", ".hoodie", ".hoodie/.temp", "a/../..", ""])
def test_partitions_named_by_path_cannot_lead_out(table: HoodieTable, tmp_path: Path, path: str) -> None:
    before = files_below(tmp_path)
    try:
        result = table.delete_partitions([path])
    except LakehouseError:
        result = None
    assert result is None or result.instant is None
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("order", [("a", "a/b"), ("a/b", "a")])
def test_partition_inside_of_another_is_refused_and_told(tmp_path: Path, order: tuple[str, str]) -> None:
    properties = {"hoodie.datasource.write.partitionpath.urlencode": "false"}
    table = make_table(tmp_path / "t", SCHEMA, partition_by=("part",), properties=properties)
    table.insert(batch(order[0]))
    refused(tmp_path, PartitionValueError, lambda: table.upsert(batch(order[1])), match="inside of the other")
    assert [row["part"] for row in rows_of(table).values()] == [order[0]]


def test_refused_value_and_its_column_are_named(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    error = refused(tmp_path, PartitionValueError, lambda: table.upsert(batch("nul\0")))
    assert "'part'" in str(error)
    assert "nul" in str(error)


def plain_table(tmp_path: Path) -> HoodieTable:
    made = make_table(tmp_path / "t", SCHEMA, partition_by=("part",))
    made.bulk_insert(pa.table({"id": ["x", "y"], "part": ["x", "y"]}, schema=SCHEMA))
    return made


def test_partition_replaced_by_a_link_out_of_the_table_is_neither_read_nor_written(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    outside = tmp_path / "outside"
    shutil.move(tmp_path / "t" / "part=x", outside)
    (tmp_path / "t" / "part=x").symlink_to(outside)
    with pytest.raises(LakehouseError):
        table.to_arrow()
    for write in (table.bulk_insert, table.upsert, table.insert_overwrite):
        refused(tmp_path, LakehouseError, lambda write=write: write(pa.table({"id": ["n"], "part": ["x"]}, schema=SCHEMA)))


def test_link_to_a_foreign_directory_is_not_a_partition_and_not_followed_by_deletions(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"precious")
    (tmp_path / "t" / "part=z").symlink_to(outside)
    (tmp_path / "t" / ".hoodie" / ".temp").mkdir(exist_ok=True)
    (tmp_path / "t" / ".hoodie" / ".temp" / "20200101000000000").symlink_to(outside)
    table.upsert(pa.table({"id": ["x"], "part": ["y"]}, schema=SCHEMA))
    table.insert_overwrite_table(pa.table({"id": ["x"], "part": ["y"]}, schema=SCHEMA))
    assert list(rows_of(table)) == ["x"]
    assert [path.read_bytes() for path in outside.iterdir()] == [b"precious"]


def test_timeline_folder_that_is_a_link_out_is_refused(tmp_path: Path) -> None:
    table = plain_table(tmp_path)
    shutil.move(tmp_path / "t" / ".hoodie", tmp_path / "meta")
    (tmp_path / "t" / ".hoodie").symlink_to(tmp_path / "meta")
    refused(tmp_path, StorageError, lambda: table.upsert(pa.table({"id": ["x"], "part": ["y"]}, schema=SCHEMA)))


@pytest.mark.parametrize("partitions", ["part=a", {"part": "a"}])
def test_a_partition_that_is_not_in_a_list_is_refused(table: HoodieTable, tmp_path: Path, partitions: object) -> None:
    refused(tmp_path, OptionError, lambda: table.delete_partitions(partitions), match="come in a list")


def test_a_table_without_partitions_has_none_to_delete(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", pa.schema([("id", pa.string())]))
    refused(tmp_path, PartitionValueError, lambda: table.delete_partitions(["part=a"]), match="no partitions")
    table.insert(pa.table({"id": ["x"]}))
    assert table.delete_partitions([""]).instant is not None
    assert rows_of(table) == {}


@pytest.mark.parametrize("path", ["a=1", "1/2", "b=2/a=1", "", "/"])
def test_a_path_that_is_no_partition_is_refused_with_their_form(tmp_path: Path, path: str) -> None:
    table = make_table(tmp_path / "t", pa.schema([("id", pa.string()), ("a", pa.int64()), ("b", pa.int64())]), partition_by=("a", "b"))
    table.insert(pa.table({"id": ["x", "y"], "a": [1, 1], "b": [2, 3]}))
    refused(tmp_path, PartitionValueError, lambda: table.delete_partitions([path]), match=r"of the form a=\.\.\./b=\.\.\.")
    assert table.delete_partitions(["a=1/b=2"]).instant is not None
    assert list(rows_of(table)) == ["y"]
