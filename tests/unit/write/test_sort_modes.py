"""`hoodie.bulkinsert.sort.mode` for rows in this process: which files they are in, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import OptionError
from lakehouse_engine.options import WriteOptions, check_known

MODE = "hoodie.bulkinsert.sort.mode"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
PARTITIONER = "hoodie.bulkinsert.user.defined.partitioner.class"
MODES = ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]
SMALL_FILES = {"hoodie.parquet.max.file.size": 4000}

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
COUNT = 4000


def make(folder: Path, **more: Any) -> HoodieTable:
    given = {"record_key": ["id"], "partition_by": ["p"], **more}
    return Lakehouse(str(folder)).create_table("s.t", schema=SCHEMA, **given)


def rows() -> pa.Table:
    generator = np.random.default_rng(4)
    ids = generator.permutation(COUNT)
    x = pa.array(generator.random(COUNT), mask=ids % 50 == 0)
    return pa.table([ids, pa.array(["b", "a", "c"]).take(pa.array(ids % 3)), x], schema=SCHEMA)


def files(table: HoodieTable) -> list[pa.Table]:
    """The rows of each base file, in the order in which the files were written."""
    paths = [path for path in Path(table.path).rglob("*.parquet") if ".hoodie" not in path.parts]
    read = [pq.ParquetFile(path).read() for path in paths]
    return sorted(read, key=lambda file: int(file.column("_hoodie_commit_seqno")[0].as_py().split("_")[1]))


def values(files: list[pa.Table], column: str) -> list[Any]:
    return [value for file in files for value in file.column(column).to_pylist()]


@pytest.mark.parametrize("mode", ["GLOBAL_SORT", "PARTITION_SORT", "global_sort"])
@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_sorted_rows_are_by_partition_and_record_key(tmp_path: Path, mode: str, operation: str) -> None:
    table = make(tmp_path)
    getattr(table, operation)(rows(), options={MODE: mode, **SMALL_FILES})
    written = files(table)
    assert len(written) > 6
    assert values(written, "_hoodie_partition_path") == sorted(values(written, "_hoodie_partition_path"))
    for path in "p=a", "p=b", "p=c":
        keys = values([file for file in written if file.column("_hoodie_partition_path")[0].as_py() == path], "_hoodie_record_key")
        assert keys == sorted(keys)
    assert table.to_arrow().sort_by("id") == rows().sort_by("id")


@pytest.mark.parametrize("mode", [None, "NONE", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"])
def test_without_a_sort_rows_of_a_partition_stay_as_they_came(tmp_path: Path, mode: str | None) -> None:
    table = make(tmp_path)
    table.bulk_insert(rows(), options={**SMALL_FILES, **({} if mode is None else {MODE: mode})})
    written = files(table)
    for value in "abc":
        found = values([file for file in written if file.column("p")[0].as_py() == value], "id")
        assert found == rows().filter(pc.field("p") == value).column("id").to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {MODE: "GLOBAL_SORT"},
        {MODE: "PARTITION_SORT"},
        {MODE: "PARTITION_PATH_REPARTITION_AND_SORT"},
        {MODE: "NONE", PARTITIONER: "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"},
    ],
    ids=["no mode", "global", "in partitions", "by partition", "Hudi's partitioner"],
)
def test_named_columns_are_sorted_by_in_place_of_the_key(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path)
    table.bulk_insert(rows(), options={COLUMNS: " X , id", **SMALL_FILES, **options})
    written = files(table)
    for value in "abc":
        of_partition = [file for file in written if file.column("p")[0].as_py() == value]
        expected = rows().filter(pc.field("p") == value).to_pylist()
        expected.sort(key=lambda row: (row["x"] is not None, row["x"] or 0.0, row["id"]))
        assert values(of_partition, "id") == [row["id"] for row in expected]


def test_without_partitions_and_keys_there_is_nothing_to_sort_by_but_columns(tmp_path: Path) -> None:
    table = make(tmp_path, record_key=[], partition_by=[])
    table.bulk_insert(rows(), options={MODE: "GLOBAL_SORT", **SMALL_FILES})
    assert values(files(table), "id") == rows().column("id").to_pylist()
    other = make(tmp_path / "other", record_key=[], partition_by=[])
    other.bulk_insert(rows(), options={COLUMNS: "id", **SMALL_FILES})
    assert values(files(other), "id") == list(range(COUNT))


def test_combined_rows_are_sorted_too(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=[])
    twice = pa.concat_tables([rows(), rows()])
    combined = {"hoodie.combine.before.insert": "true", "lakehouse.write.broadcast.max.bytes": 1 << 20}
    result = table.bulk_insert(twice, options={MODE: "GLOBAL_SORT", COLUMNS: "x,id", **combined, **SMALL_FILES})
    assert result.duplicates_dropped == COUNT
    expected = sorted(rows().to_pylist(), key=lambda row: (row["x"] is not None, row["x"] or 0.0, row["id"]))
    assert values(files(table), "id") == [row["id"] for row in expected]


def test_rows_that_are_combined_in_shares_are_refused_a_sort(tmp_path: Path) -> None:
    table = make(tmp_path)
    options = {MODE: "GLOBAL_SORT", "hoodie.combine.before.insert": "true", "lakehouse.write.broadcast.max.bytes": 0}
    with pytest.raises(OptionError, match=r"GLOBAL_SORT cannot be kept.*Raise lakehouse.write.broadcast.max.bytes"):
        table.bulk_insert(rows(), options=options)
    assert (table.to_arrow().num_rows, table.history()) == (0, [])
    table.bulk_insert(rows(), options={**options, MODE: "NONE"})
    assert table.to_arrow().num_rows == COUNT


def test_buckets_that_are_replaced_are_sorted_inside(tmp_path: Path) -> None:
    table = make(tmp_path, properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
    table.insert_overwrite_table(rows(), options={COLUMNS: "x", "lakehouse.write.broadcast.max.bytes": 1 << 20})
    written = files(table)
    assert len(written) == 6
    for file in written:
        found = file.column("x").to_pylist()
        assert found == sorted(found, key=lambda value: (value is not None, value or 0.0))


def test_statistics_rule_out_files_of_sorted_rows(tmp_path: Path) -> None:
    """What a sort is for: of files of equal size a range of the column is in few."""
    shares = {}
    for name, options in {"sorted": {COLUMNS: "id"}, "given": {}}.items():
        table = make(tmp_path / name, partition_by=[])
        table.bulk_insert(rows(), options={**SMALL_FILES, **options})
        bounds = [pc.min_max(file.column("id")).as_py() for file in files(table)]
        shares[name] = sum(bound["min"] <= 2000 <= bound["max"] for bound in bounds) / len(bounds)
    assert shares == {"sorted": pytest.approx(1 / len(bounds), abs=0.05), "given": 1.0}


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_writes_by_key_need_no_column_of_the_sort(tmp_path: Path, operation: str) -> None:
    table = make(tmp_path)
    getattr(table, operation)(rows(), options={COLUMNS: "nowhere"})
    assert table.to_arrow().num_rows == COUNT


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({MODE: "RANDOM"}, f"expected one of {', '.join(MODES)}"),
        ({PARTITIONER: "org.example.Mine", COLUMNS: "x"}, "expected one of RowCustomColumnsSortPartitioner"),
        ({PARTITIONER: "RowCustomColumnsSortPartitioner"}, f"sorts by columns: name them in {COLUMNS}"),
        ({COLUMNS: "x", MODE: "NONE"}, "NONE sorts by no column, which contradicts"),
        ({COLUMNS: "x", MODE: "PARTITION_PATH_REPARTITION"}, "keep one of the two"),
        ({COLUMNS: "nowhere"}, "sort.columns=nowhere: .*: there is no such column; the columns are id, p, x"),
        ({COLUMNS: "x,X"}, "twice"),
    ],
)
def test_bad_values_are_refused_and_nothing_is_written(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    table = make(tmp_path)
    with pytest.raises(OptionError, match=problem):
        table.bulk_insert(rows(), options=options)
    assert table.history() == []


def test_a_column_without_an_order_is_refused_by_name(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("tags", pa.list_(pa.string())))
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"])
    with pytest.raises(OptionError, match=r"sort\.columns=tags: .* the column 'tags' of type list"):
        table.bulk_insert(pa.Table.from_pylist([{"id": 1, "tags": ["a"]}], schema=schema), options={COLUMNS: "tags"})


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_known_options_and_not_only_tuning(mode: str) -> None:
    assert check_known({MODE: mode}) == []
    assert WriteOptions.read({MODE: mode.lower()}).sort_mode == mode
