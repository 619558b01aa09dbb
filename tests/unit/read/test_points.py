"""A query by record key opens the files that the record index names, and has the rows of one that opens all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.format.metadata_table.locations import LOCATIONS, location_payloads
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.read import indexed, points
from lakehouse_engine.read.key_values import key_values
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.input import ArrowInput
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from tests.support.fixtures import EVERY_VERSION, spark_fixtures, unpack_spark_fixture
from tests.support.metadata_tables import BUILD, MetadataTableBuilder

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("q", pa.float64())])
A, B, Q = (pc.field(name) for name in SCHEMA.names)
FILES = 10


@pytest.mark.parametrize(
    ("expression", "names", "rows"),
    [
        (A == 5, ["a"], [(5,)]),
        (pc.scalar(5) == A, ["a"], [(5,)]),
        ((A == 5) & (Q > 0.5), ["a"], [(5,)]),
        ((A == 5) | (A == 7), ["a"], [(5,), (7,)]),
        (A.isin([5, 7]), ["a"], [(5,), (7,)]),
        (B.isin(["x", "it's"]), ["b"], [("it's",), ("x",)]),
        (~(A != 5), ["a"], [(5,)]),
        ((A == 5) & B.isin(["x", "y"]), ["a", "b"], [(5, "x"), (5, "y")]),
        (((A == 5) & (B == "x")) | ((A == 6) & (B == "y")), ["a", "b"], [(5, "x"), (5, "y"), (6, "x"), (6, "y")]),
        (pc.equal(A, pa.scalar(5, pa.int8())), ["a"], [(5,)]),
        ((A == 5) | (Q > 0.5), ["a"], None),
        (A > 5, ["a"], None),
        (A != 5, ["a"], None),
        (A.isin([5, None]), ["a"], None),
        ((A == 5) | A.is_null(), ["a"], None),
        (A == 5, ["a", "b"], None),
        (Q == 0.5, ["q"], None),
        (A.cast(pa.float64()) == 5.0, ["a"], None),
        (A + 1 == 5, ["a"], None),
    ],
)
def test_values_that_a_filter_asks_for(expression: pc.Expression, names: Sequence[str], rows: list[tuple[Any, ...]] | None) -> None:
    found = key_values(RowFilter.of(expression, SCHEMA), names)
    assert (None if found is None else sorted(tuple(row[name] for name in names) for row in found.to_pylist())) == rows


def table_of(keys: Sequence[str], **more: Any) -> MemoryStorage:
    """A table with one row in each of its files, and a record index of them."""
    storage = without_index(keys, **more)
    index(storage)
    return storage


def without_index(keys: Sequence[str], **more: Any) -> MemoryStorage:
    storage = MemoryStorage()
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=tuple(keys), **more))
    for number in range(FILES):
        write(storage, WriteOperationType.BULK_INSERT, number, f"b{number}", number / 10)
    return storage


def write(storage: MemoryStorage, operation: WriteOperationType, a: int, b: str, q: float) -> None:
    data = ArrowInput(pa.table({"a": [a], "b": [b], "q": [q]}, schema=SCHEMA))
    execute_write(storage, WriteRequest(operation, data, WriteOptions()), LocalRunner(1))


def index(storage: MemoryStorage, *, left_out: int = 0) -> None:
    """A record index of the stored rows. The metadata table does not know the last `left_out` instants."""
    rows = HoodieTable(storage).to_arrow(columns=["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"])
    keys, paths, files = (column.to_pylist() for column in rows.columns)
    times = [one.requested_time for one in TableState.load(storage).timeline.completed()]
    builder = MetadataTableBuilder(storage).begin("files", "record_index")
    places = pa.table([paths, [file.partition("_")[0] for file in files], [0] * len(files)], schema=LOCATIONS)
    builder.base("record-index-0000-0", pa.array(keys), location_payloads(places))
    builder.publish(BUILD)
    for time in times[: len(times) - left_out]:
        builder.publish(time)


def plan(storage: MemoryStorage, expression: pc.Expression, **query: Any) -> ScanPlan:
    return plan_query(TableState.load(storage), Query(filters=expression, **query))


def opened(found: ScanPlan) -> int:
    return len(found.files) + len(found.logged)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_only_the_file_of_the_key_is_planned(table_type: str) -> None:
    storage = table_of(["a"], table_type=table_type)
    assert [opened(plan(storage, one)) for one in (A == 3, A.isin([3, 4]), A == 77, Q == 0.3)] == [1, 2, 0, FILES]
    assert HoodieTable(storage).to_arrow(filters=A.isin([3, 77]), columns=["a", "b"]).to_pylist() == [{"a": 3, "b": "b3"}]


def test_a_key_of_several_columns_is_composed_as_writes_do() -> None:
    storage = table_of(["a", "b"], partition_by=("q",))
    both = (A == 3) & B.isin(["b3", "b4"])
    assert [opened(plan(storage, one)) for one in (both, A == 3, (A == 3) & (B == "b4"))] == [1, FILES, 0]
    assert HoodieTable(storage).to_arrow(filters=both, columns=["a", "b"]).to_pylist() == [{"a": 3, "b": "b3"}]


def test_a_slice_with_logs_is_planned_if_the_key_is_there() -> None:
    storage = without_index(["a"], table_type="mor")
    for number in (3, 4):
        write(storage, WriteOperationType.UPSERT, number, "new", 9.0)
    index(storage)
    found = plan(storage, A == 3)
    assert (len(found.files), len(found.logged)) == (0, 1)
    assert HoodieTable(storage).to_arrow(filters=A == 3, columns=["b"]).to_pylist() == [{"b": "new"}]


def test_an_index_that_lags_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    storage = without_index(["a"])
    write(storage, WriteOperationType.BULK_INSERT, 77, "late", 0.0)
    index(storage, left_out=1)
    assert opened(plan(storage, A == 77)) == FILES + 1
    assert "is not used: the metadata table does not know of" in caplog.text


def test_the_index_is_not_asked_about_a_state_that_is_past(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = table_of(["a"])
    asked: list[int] = []
    monkeypatch.setattr(points, "record_locations", lambda *given: asked.append(1))
    before = TableState.load(storage)
    newest = [one.requested_time for one in before.timeline.completed()][-1]
    storage.create(".hoodie/29990101000000000.commit.requested", b"")
    assert opened(plan_query(before, Query(filters=A == 3))) == FILES
    storage.delete(".hoodie/29990101000000000.commit.requested")
    assert opened(plan(storage, A == 3, as_of=newest)) == FILES
    assert opened(plan(storage, A == 3, kind="incremental", begin="000")) == FILES
    assert opened(plan(storage, A == 3, kind="read_optimized")) == FILES, "a base file has rows that logs moved elsewhere"
    assert asked == []


def test_a_table_whose_keys_are_not_made_of_its_columns_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = table_of(["a"])
    monkeypatch.setattr(points, "may_be_foreign", lambda state: True)
    assert opened(plan(storage, A == 3)) == 1
    monkeypatch.setattr(points, "_makes", lambda form, rows: False)
    assert opened(plan(storage, A == 3)) == FILES


@pytest.mark.parametrize("name", [name for name in spark_fixtures(EVERY_VERSION) if name.endswith("_metadata")])
def test_tables_of_hudi_have_the_same_rows_by_key(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HoodieTable.open(str(unpack_spark_fixture(name, tmp_path)))
    rows = table.to_arrow(columns=["id"]).column("id").to_pylist()
    monkeypatch.setattr(indexed, "WORTH_ASKING", 1)
    for key in (*rows, "absent"):
        found = table.to_arrow(filters=pc.field("id") == key, columns=["id"]).column("id").to_pylist()
        assert found == [one for one in rows if one == key]
    if "/cow" in name:
        state = TableState.load(table.storage)
        assert len(plan_query(state, Query(filters=pc.field("id") == rows[0])).files) == 1 < len(state.view.latest_slices())
