"""A compaction on Spark's executors: one task a slice, which is sent what it needs of its own, and answers in little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable
from lakehouse_engine.files import slice_reader
from lakehouse_engine.spark.tasks import parcels, runner
from lakehouse_engine.spark.tasks.parcels import Packing
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import assert_same_rows

SLICES, COMMITS = 6, 12
OPTIONS = {"lakehouse.task.runner": "SPARK", "hoodie.memory.compaction.max.size": 1, "lakehouse.parquet.row.group.rows": 50}


def rows(value: int, count: int = 600) -> pa.Table:
    numbers = list(range(count))
    text = [f"text {value} of {number}" for number in numbers]
    return pa.table({"id": numbers, "part": [f"p{number % SLICES}" for number in numbers], "n": [value] * count, "s": text})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A slice a partition, each with the logs of many commits."""
    spec = TableSpec("t", rows(0).schema, ["id"], [], ["part"], "mor", properties={"hoodie.index.type": "SIMPLE"})
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    made = HoodieTable.open(str(tmp_path / "t"))
    made.bulk_insert(rows(0))
    for value in range(1, COMMITS):
        made.upsert(rows(value, 60 * value))
    return made.path


def test_each_slice_is_a_task_of_its_own_with_little_to_send(path: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, shared, answers = list[int](), list[int](), list[int]()
    pack, result_of = runner.pack, runner.result_of

    def weighed(packing: Packing, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        pack(packing, function, tasks)
        ends = packing.sealed().ends
        sizes = [end - start for start, end in zip((0, *ends), ends, strict=False)]
        parts.extend(sizes[: len(tasks)])
        shared.extend(sizes[len(tasks) :])

    def answered(outcome: bytes) -> Any:
        answers.append(len(outcome))
        return result_of(outcome)

    def decode_here(*arguments: Any, **named: Any) -> Any:
        raise AssertionError("a log was decoded on the driver")

    monkeypatch.setattr(runner, "pack", weighed)
    monkeypatch.setattr(runner, "result_of", answered)
    before = HoodieTable.open(path).to_arrow(meta_columns=True)
    monkeypatch.setattr(slice_reader, "scan_logs", decode_here)
    table = HoodieTable.open(path, spark=spark, options=OPTIONS)
    result = table.compact()
    monkeypatch.undo()
    assert (result.files_created, result.log_files_compacted) == (SLICES, SLICES * (COMMITS - 1))
    assert len(parts) == len(answers) == SLICES
    # Paths and promises of a slice's own logs; what commits and columns there are is with what all share.
    assert max(parts) < (COMMITS - 1) * 400 + 2_000
    assert sum(shared) < 20_000
    assert max(answers) < 4_000 < parcels.INLINE
    file_names = ["_hoodie_file_name"]
    assert_same_rows(table.to_arrow(meta_columns=True).drop_columns(file_names), before.drop_columns(file_names))
    assert not list(Path(path, ".hoodie", ".temp").rglob("*.arrow")), "rows that went through files are left"
