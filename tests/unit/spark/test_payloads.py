"""What tasks weigh when they are sent away: the rows of a batch once, whatever the number of files."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.engine import LocalRunner, TaskRunner
from lakehouse_engine.spark.tasks.parcels import INLINE, Packing
from lakehouse_engine.spark.tasks.pickling import dumps
from lakehouse_engine.spark.tasks.runner import Unpacking, dealt, pack
from lakehouse_engine.storage.local import LocalStorage

ROWS, FILES = 10_000, 10
KEEP = {"hoodie.clean.automatic": "false", "hoodie.parquet.small.file.limit": "0"}


def rows(value: int, count: int = ROWS) -> pa.Table:
    order = np.random.default_rng(7).permutation(count)
    return pa.table(
        {
            "id": pa.array([f"key-{number:032d}" for number in order]),
            "part": pa.array([f"p{number % 4}" for number in order]),
            "at": pa.array(np.full(count, value)),
            "text": pa.array([f"some text of the row {number:010d}" for number in order]),
        }
    )


class Carrier(LocalRunner):
    """Packs and unpacks every task as the Spark runner does; weighs what it packed."""

    def __init__(self) -> None:
        super().__init__(2)
        self.weights: dict[str, list[int]] = {}

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        parts: list[bytes] = []
        if tasks:
            pack(_List(parts), function, tasks)  # type: ignore[arg-type]
            self.weights.setdefault(name, []).append(sum(map(len, parts)))
        unpacking = Unpacking(_List(parts))  # type: ignore[arg-type]
        return [pickle.loads(dumps(unpacking.carry_out(number))) for number in range(len(tasks))]


class _List:
    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    def add(self, data: bytes) -> None:
        self._parts.append(data)

    def part(self, number: int) -> bytes:
        return self._parts[number]


class Shared:
    """Counts how often one is unpickled."""

    unpickled = 0

    def __init__(self) -> None:
        self.rows = np.arange(3)

    def __setstate__(self, state: dict[str, Any]) -> None:
        Shared.unpickled += 1
        self.__dict__.update(state)


@dataclass(frozen=True)
class Described:
    shared: Shared


@dataclass(frozen=True)
class OneOfMany:
    described: Described
    number: int


def of_one(task: OneOfMany) -> int:
    return int(task.described.shared.rows.sum()) + task.number


def test_what_tasks_share_is_unpickled_once_for_those_that_go_together() -> None:
    described, parts = Described(Shared()), list[bytes]()
    pack(_List(parts), of_one, [OneOfMany(described, number) for number in range(5)])  # type: ignore[arg-type]
    Shared.unpickled = 0
    unpacking = Unpacking(_List(parts))  # type: ignore[arg-type]
    assert [unpacking.carry_out(number) for number in (3, 0, 4)] == [6, 3, 7]
    assert Shared.unpickled == 1


def test_what_the_next_task_does_not_share_is_let_go() -> None:
    first, second, parts = Described(Shared()), Described(Shared()), list[bytes]()
    tasks = [OneOfMany(described, number) for number, described in enumerate((first, first, second, second))]
    pack(_List(parts), of_one, tasks)  # type: ignore[arg-type]
    unpacking = Unpacking(_List(parts))  # type: ignore[arg-type]
    counts = []
    for number in (0, 1, 2, 3, 0):
        Shared.unpickled = 0
        unpacking.carry_out(number)
        counts.append(Shared.unpickled)
    assert counts == [1, 0, 1, 0, 1]


@pytest.mark.parametrize(("count", "most", "sizes"), [(3, 8, [1, 1, 1]), (8, 8, [1] * 8), (19, 4, [5, 5, 5, 4]), (1, 1, [1])])
def test_tasks_are_dealt_in_groups_of_one_size(count: int, most: int, sizes: list[int]) -> None:
    groups = dealt(count, most)
    assert [len(group) for group in groups] == sizes
    assert sorted(number for group in groups for number in group) == [*range(count)]


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[HoodieTable, Carrier]]:
    def make(partition_by: Sequence[str] = (), **arguments: Any) -> tuple[HoodieTable, Carrier]:
        lakehouse, batch = Lakehouse(str(tmp_path / "warehouse")), rows(0)
        lakehouse.create_schema("s")
        keyed = {"record_key": ["id"], "ordering_fields": ["at"], "partition_by": partition_by, **arguments}
        table = lakehouse.create_table("s.t", schema=batch.schema, **keyed)
        for number in range(FILES):
            table.insert(batch.slice(number * ROWS // FILES, ROWS // FILES), options=KEEP)
        carrier = Carrier()
        runner: Callable[..., TaskRunner] = lambda self, options: carrier  # noqa: E731
        monkeypatch.setattr(HoodieTable, "_runner", runner)
        return lakehouse.table("s.t"), carrier

    return make


def contents(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: str(row["id"]))


def expected(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("partition_by", [(), ("part",)])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_an_upsert_into_many_files_sends_the_batch_about_once(carried: Any, table_type: str, partition_by: Sequence[str]) -> None:
    table, carrier = carried(partition_by, table_type=table_type)
    batch = rows(1)
    table.upsert(batch, options=KEEP)
    assert contents(table) == expected(batch)
    keys = batch.column("id").nbytes
    assert sum(carrier.weights["tag"]) < 4 * (keys + 16 * ROWS)
    assert sum(carrier.weights["write"]) < 2 * (batch.nbytes + keys + 24 * ROWS)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_updates_of_some_columns_do_the_same_with_packed_rows(carried: Any, table_type: str) -> None:
    table, _ = carried(table_type=table_type)
    changed = rows(2).slice(0, 500)
    changed = changed.set_column(changed.column_names.index("text"), "text", pa.array(["other"] * 500))
    table.upsert(changed, merge_update_columns=["at"], options=KEEP)
    touched = {row["id"] for row in changed.to_pylist()}
    wanted = rows(0).to_pylist()
    for row in wanted:
        if row["id"] in touched:
            row["at"] = 2
    assert contents(table) == sorted(wanted, key=lambda row: str(row["id"]))


def test_a_bulk_insert_of_arrow_rows_sends_each_row_once(carried: Any) -> None:
    table, carrier = carried(("part",))
    more = rows(3)
    more = more.set_column(0, "id", pa.array([f"more-{number:032d}" for number in range(ROWS)]))
    table.bulk_insert(more, options={**KEEP, "hoodie.parquet.max.file.size": "60000"})
    assert table.to_arrow().num_rows == 2 * ROWS
    (weight,) = carrier.weights["write"]
    assert weight < 2 * (more.nbytes + more.column("id").nbytes)


def test_a_compaction_sends_what_its_slices_share_once(carried: Any) -> None:
    table, carrier = carried(("part",), table_type="mor")
    table.upsert(rows(4), options={**KEEP, "hoodie.compact.inline": "false"})
    table.compact()
    assert contents(table) == expected(rows(4))
    assert carrier.weights["compact"][0] < 100_000


@pytest.mark.parametrize(
    "value",
    [
        pa.array(list(range(100_000))).slice(50_000, 10),
        pa.chunked_array([pa.array(["text"] * 100_000).slice(7, 3), pa.array(["more"])]),
        pa.table({"a": pa.array(list(range(100_000)))}).slice(99_990),
        pa.record_batch({"a": pa.array([[1, 2]] * 100_000)}).slice(4, 2),
        pa.array(["x", None, "y"] * 40_000).slice(1, 5),
        pa.array([{"n": number} for number in range(50_000)]).slice(49_000, 3),
        pa.array([True, False] * 40_000).slice(3, 11),
    ],
    ids=["array", "chunked", "table", "batch", "nulls", "struct", "bits"],
)
def test_a_slice_is_sent_without_its_parent(value: Any) -> None:
    data = dumps(value)
    assert len(data) < 2_000
    assert pickle.loads(data).equals(value)


@pytest.mark.parametrize(
    "value",
    [
        pa.table({"a": pa.array([], pa.string())}),
        pa.chunked_array([], pa.int64()),
        pa.array([], pa.dictionary(pa.int32(), pa.string())),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.record_batch({"a": pa.array([], pa.date32())}),
        pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})]),
    ],
    ids=["table", "chunked", "dictionary", "encoded", "batch", "schema"],
)
def test_empty_and_encoded_data_come_back_as_they_were(value: Any) -> None:
    again = pickle.loads(dumps(value))
    assert again.equals(value)
    assert type(again) is type(value)


@pytest.mark.parametrize("large", [False, True])
def test_parts_are_read_alone_and_nothing_is_left_behind(tmp_path: Path, large: bool) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create(".hoodie/hoodie.properties", b"")
    data = [b"one", b"", b"x" * (INLINE if large else 1), b"last"]
    with Packing(storage) as packing:
        for part in data:
            packing.add(part)
        parcels = pickle.loads(dumps(packing.sealed()))
        assert (parcels.folder is not None) is large
        assert [parcels.part(number) for number in range(len(data))] == data
        outcome, path = parcels.result(b"r" * (INLINE + 1))
        assert (path is not None) is large
        assert (outcome or storage.read(path)) == b"r" * (INLINE + 1)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["hoodie.properties"]
