"""Every kind of table that we write: hudi-rs reads the rows that we read, and both are what a model in memory holds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from lakehouse_engine.model.write_stats import WriteOperationType
from tests.support.readers import assert_same_rows, read_with_hudi_rs
from tests.support.table_builder import RICH, TableBuilder, rich_row


class Kind(NamedTuple):
    """A way to make keys and partitions."""

    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]


KINDS = {
    "simple": Kind(("id",), ("region",)),
    "simple_date_partition": Kind(("code",), ("day",)),
    "complex": Kind(("id", "code"), ("region", "day")),
    "complex_one_key": Kind(("id",), ("region", "day")),
    "complex_one_partition": Kind(("id", "code"), ("region",)),
    "nonpartitioned": Kind(("id",), ()),
    "nonpartitioned_two_keys": Kind(("id", "code"), ()),
}
KEYLESS = {"keyless": Kind((), ()), "keyless_partitioned": Kind((), ("region",))}

ODD = ["a b", "k=v", "100%", "12:30", "#1", "🙂", None, "x/y", "%2F", "a+b&c", "it's", "{z}", "ünï", "a?b", "a*b", "tail ", "~", "C:\\x"]
"""Partition values that a path, an URL or a hive-style name could get wrong."""


def make(folder: Path, kind: Kind, *, hive: bool = True, index: str = "GLOBAL_SIMPLE", ordering: str | None = "ts") -> TableBuilder:
    # Many small files: an upsert touches some groups and leaves others.
    options = {"hoodie.parquet.small.file.limit": 2000}
    return TableBuilder.create(
        folder / "t",
        record_key=kind.record_key,
        partition_by=kind.partition_by,
        hive_style=hive,
        index=index,
        ordering=ordering,
        options=options,
    )


INDEXES = {"GLOBAL_SIMPLE": True, "GLOBAL_BLOOM": False, "BLOOM": True, "SIMPLE": False}
"""Whether the paths are in hive style."""
HISTORIES = {f"{kind}-{index}": (KINDS[kind], index) for kind in KINDS for index in INDEXES}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_every_operation_reads_the_same(name: str, tmp_path: Path) -> None:
    kind, index = HISTORIES[name]
    built = make(tmp_path, kind, hive=INDEXES[index], index=index)
    built.bulk_insert([rich_row(number) for number in range(12)])
    built.insert([rich_row(number) for number in range(12, 20)])
    built.upsert([rich_row(number, seed=1) for number in range(5, 25)])
    # Some lose by their ordering value, some have none.
    built.upsert([rich_row(number, seed=2, ts=(None, 50, 200)[number % 3]) for number in range(0, 25, 2)])
    built.delete([rich_row(number) for number in (1, 7, 13, 99)])
    built.upsert([rich_row(number, seed=3, name="partly", price=None) for number in range(3, 9)], columns=["name", "price"])
    if kind.partition_by:
        # Under a global index these leave their partition; else they are other records.
        built.upsert([rich_row(number, seed=400, **moved(kind, number)) for number in range(10, 16)])
        built.insert_overwrite([rich_row(number, seed=5) for number in (100, 103)])
        row = rich_row(101)
        built.delete_partitions([tuple(row[name] for name in kind.partition_by)])
    built.upsert([rich_row(number, seed=600) for number in range(4, 30)])
    built.insert_overwrite_table([rich_row(number, seed=700) for number in range(7)])
    built.upsert([rich_row(number, seed=800) for number in range(5, 10)])
    assert len(built.model.snapshots) >= 9
    built.check(with_hudi_rs=True, every_range=index == "GLOBAL_SIMPLE")


def moved(kind: Kind, number: int) -> dict[str, object]:
    return {name: rich_row(number + 1)[name] for name in kind.partition_by}


@pytest.mark.parametrize("hive", [True, False], ids=["hive", "plain"])
@pytest.mark.parametrize("kind", KEYLESS.values(), ids=KEYLESS)
def test_a_table_with_generated_keys_reads_the_same(kind: Kind, hive: bool, tmp_path: Path) -> None:
    built = make(tmp_path, kind, hive=hive, ordering=None)
    built.bulk_insert([rich_row(number % 5) for number in range(12)])
    built.insert([rich_row(number % 5) for number in range(9)])
    if kind.partition_by:
        built.insert_overwrite([rich_row(0), rich_row(0)])
        built.delete_partitions([("south",)])
    built.insert([rich_row(number) for number in range(4)])
    built.check(with_hudi_rs=True)
    keys = built.table.to_arrow(meta_columns=True).column("_hoodie_record_key").to_pylist()
    assert len(set(keys)) == len(keys)
    built.insert_overwrite_table([rich_row(number) for number in range(6)])
    built.check(with_hudi_rs=True)


@pytest.mark.parametrize("hive", [True, False], ids=["hive", "plain"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BLOOM"])
def test_odd_partition_values_read_the_same(hive: bool, index: str, tmp_path: Path) -> None:
    built = make(tmp_path, KINDS["simple"], hive=hive, index=index)
    built.bulk_insert([rich_row(number, region=value) for number, value in enumerate(ODD)])
    built.upsert([rich_row(number, seed=1, region=value) for number, value in enumerate(ODD)])
    built.upsert([rich_row(number, seed=2, region=ODD[(number + 1) % len(ODD)]) for number in range(len(ODD))])
    built.delete([rich_row(0, region=ODD[1]), rich_row(6, region=ODD[7])])
    built.insert_overwrite([rich_row(200 + number, region=value) for number, value in enumerate(ODD[2:9])])
    built.delete_partitions([("k=v",), ("%2F",), (None,)])
    built.check(with_hudi_rs=True)


@pytest.mark.parametrize("payload", ["overwrite", "event_time", "partial"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "SIMPLE"])
def test_every_payload_merges_as_the_model_does(payload: str, index: str, tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", partition_by=["region"], ordering="ts", index=index, payload=payload)
    built.upsert([rich_row(number % 7, seed=number) for number in range(20)])
    built.upsert([rich_row(number % 9, seed=(number * 7) % 30) for number in range(20)])
    built.upsert([rich_row(number % 9, seed=number + 20, region="west") for number in range(12)])
    built.upsert([rich_row(number, seed=5, region="east") for number in range(12)])
    built.check(with_hudi_rs=True)


def test_the_schema_is_the_tables_and_types_are_kept(tmp_path: Path) -> None:
    built = make(tmp_path, KINDS["simple"])
    built.bulk_insert([rich_row(number) for number in range(30)])
    built.upsert([rich_row(number, seed=1) for number in range(0, 30, 3)])
    assert built.table.schema == RICH
    ours = built.table.to_arrow()
    assert ours.schema.remove_metadata() == RICH
    assert_same_rows(read_with_hudi_rs(built.path).select(RICH.names), ours)


def test_tables_without_rows_read_the_same(tmp_path: Path) -> None:
    built = make(tmp_path, KINDS["simple"])
    built.bulk_insert([rich_row(number) for number in range(6)])
    built.delete([rich_row(number) for number in range(6)])
    built.check()
    assert read_with_hudi_rs(built.path).num_rows == 0
    built.upsert([rich_row(number, seed=3) for number in range(4)])
    built.insert_overwrite_table([])
    assert built.table.to_arrow().num_rows == 0
    built.check()
    assert read_with_hudi_rs(built.path).num_rows == 0


def test_every_operation_of_the_history_is_one_that_the_commits_name(tmp_path: Path) -> None:
    built = make(tmp_path, KINDS["simple"])
    results = [
        built.bulk_insert([rich_row(0)]),
        built.insert([rich_row(1)]),
        built.upsert([rich_row(2)]),
        built.delete([rich_row(0)]),
        built.insert_overwrite([rich_row(1, seed=1)]),
        built.delete_partitions([("south",)]),
        built.insert_overwrite_table([rich_row(5)]),
    ]
    kinds = [result.operation for result in results]
    assert set(kinds) == {
        WriteOperationType.BULK_INSERT,
        WriteOperationType.INSERT,
        WriteOperationType.UPSERT,
        WriteOperationType.DELETE,
        WriteOperationType.INSERT_OVERWRITE,
        WriteOperationType.DELETE_PARTITION,
        WriteOperationType.INSERT_OVERWRITE_TABLE,
    }
    named = [built.table.state.commit_metadata(instant).operation_type for instant in built.table.timeline.completed().writes()]
    assert named == kinds


def test_hudi_rs_reads_the_columns_that_a_batch_added(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    built.insert([{"id": 1, "n": 1}, {"id": 2, "n": None}])
    wider = pa.table({"id": pa.array([2, 3], pa.int64()), "n": pa.array([5, 2**40], pa.int64()), "more": ["a", "b"]})
    built.table.upsert(wider, options={"hoodie.datasource.write.reconcile.schema": True, "hoodie.parquet.small.file.limit": 0})
    expected = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([1, 5, 2**40], pa.int64()), "more": [None, "a", "b"]})
    assert_same_rows(built.table.to_arrow(), expected)
    assert_same_rows(read_with_hudi_rs(built.path).select(["id", "n", "more"]), expected)
