"""Writes to a table with generated columns in a process without Spark: nothing is stored whose value nobody computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.commit.expected import ExpectedState
from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import ChangedSinceReadError, ConstraintError, OptionError
from lakehouse_engine.model.constraints import Constraints, Generated
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.spark.completing import completed
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.alter import set_constraints
from lakehouse_engine.write.batch.arrangement import Arrangement
from lakehouse_engine.write.batch.input import ArrowInput, RowKeying
from lakehouse_engine.write.create import TableSpec, create_table
from lakehouse_engine.write.operation import execute_write
from lakehouse_engine.write.request import WriteRequest
from lakehouse_engine.write.source import RowSource
from tests.support.staged_rows import StagedRows

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("g", pa.int64())])
GENERATED = Constraints(generated=(Generated("g", "a + 1", ("a",)),))
ROWS = pa.table({"id": [1], "a": [1], "g": [2]}, schema=SCHEMA)

WRITES: dict[str, Callable[[HoodieTable, Any], Any]] = {
    "bulk_insert": lambda table, data: table.bulk_insert(data),
    "insert": lambda table, data: table.insert(data),
    "upsert": lambda table, data: table.upsert(data),
    "some columns": lambda table, data: table.upsert(data, merge_update_columns=["g"]),
    "insert_overwrite": lambda table, data: table.insert_overwrite(data),
    "insert_overwrite_table": lambda table, data: table.insert_overwrite_table(data),
    "replace_schema": lambda table, data: table.insert_overwrite_table(data, replace_schema=True),
    "replace_rows": lambda table, data: table.replace_rows(data, replaced=table.to_arrow(meta_columns=True)),
}


def make(folder: Path, kind: str = "cow", constraints: Constraints = GENERATED) -> HoodieTable:
    storage = LocalStorage(str(folder / "t"))
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=["id"], table_type=kind))
    HoodieTable.open(storage.root).insert(ROWS)
    set_constraints(storage, lambda _: constraints, lock_timeout_ms=1000)
    return HoodieTable.open(storage.root)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("given", [ROWS, ROWS.drop_columns(["g"])], ids=["right values", "none"])
def test_rows_are_refused_by_name_and_nothing_is_written(tmp_path: Path, kind: str, write: str, given: pa.Table) -> None:
    table = make(tmp_path, kind)
    with pytest.raises(ConstraintError, match=r"'g' is GENERATED ALWAYS AS \(a \+ 1\), which only Spark computes") as raised:
        WRITES[write](table, given)
    assert raised.value.context["column"] == "g"
    assert (len(table.history()), table.to_arrow()) == (1, ROWS)


def test_deletions_and_no_rows_go_through(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(SCHEMA.empty_table(), delete_keys=pa.table({"id": [1]}))
    assert table.to_arrow().num_rows == 0
    table.insert_overwrite_table(SCHEMA.empty_table().drop_columns(["g"]), replace_schema=True)
    assert table.schema.names == ["id", "a", "g"]
    table.delete_partitions([""])


def test_a_column_that_the_table_does_not_have_is_no_matter(tmp_path: Path) -> None:
    table = make(tmp_path, constraints=Constraints(generated=(Generated("other", "a + 1", ("a",)),)))
    table.upsert(ROWS.set_column(1, "a", pa.array([5])))
    assert table.to_arrow().column("a").to_pylist() == [5]


def test_rows_are_stored_as_they_come_only_where_columns_are_said_anew(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(OptionError, match="redefines is of a write with replace_schema"):
        table.upsert(ROWS, redefines=True)
    table.insert_overwrite_table(ROWS.drop_columns(["g"]), replace_schema=True, redefines=True)
    assert table.schema.names == ["id", "a"]


@dataclass(frozen=True, slots=True)
class Overtaken(ArrowInput):
    """Rows that are read while somebody else says what a column is computed as."""

    root: str

    def stage(
        self, keying: RowKeying, storage: Storage, folder: Callable[[], str], arrangement: Arrangement | None = None
    ) -> RowSource:
        set_constraints(LocalStorage(self.root), lambda _: GENERATED, lock_timeout_ms=1000)
        return ArrowInput(self.table).stage(keying, storage, folder, arrangement)


def test_a_column_that_is_said_to_be_generated_while_rows_are_read_counts(tmp_path: Path) -> None:
    table = make(tmp_path, constraints=Constraints())
    data = Overtaken(ROWS.set_column(2, "g", pa.array([9])), table.storage.root)
    request = WriteRequest(WriteOperationType.UPSERT, data, WriteOptions.read({}))
    with pytest.raises(ChangedSinceReadError, match="differ in g; nothing was written"):
        execute_write(table.storage, request, LocalRunner())
    assert (len(table.history()), table.to_arrow()) == (1, ROWS)


@pytest.mark.parametrize("now", [Constraints(), Constraints(generated=(Generated("g", "a + 2", ("a",)),))], ids=["none", "another"])
def test_rows_that_were_computed_otherwise_are_refused(tmp_path: Path, now: Constraints) -> None:
    table = make(tmp_path, constraints=now)
    request = WriteRequest(WriteOperationType.UPSERT, ArrowInput(ROWS), WriteOptions.read({}), generated=GENERATED.generated)
    with pytest.raises(ChangedSinceReadError, match="differ in g; nothing was written") as raised:
        execute_write(table.storage, request, LocalRunner())
    assert raised.value.table_lock is not None
    assert (len(table.history()), table.to_arrow()) == (1, ROWS)


def test_rows_that_enter_complete_are_written_without_spark_whatever_others_commit_meanwhile(tmp_path: Path) -> None:
    table = make(tmp_path)
    rows = ROWS.set_column(1, "a", pa.array([4])).set_column(2, "g", pa.array([5]))
    query = StagedRows(rows, lambda: table.upsert(SCHEMA.empty_table(), delete_keys=pa.table({"id": [1]})))
    request = WriteRequest(WriteOperationType.UPSERT, query, WriteOptions.read({}), generated=GENERATED.generated)
    execute_write(table.storage, request, LocalRunner())
    assert (table.to_arrow().to_pylist(), query.times) == ([{"id": 1, "a": 4, "g": 5}], 1)


@pytest.mark.parametrize(
    ("ordering", "named", "updated"),
    [
        ((), None, None),
        ((), ("a",), {"a", "g"}),
        ((), ("b", "g"), {"b"}),
        (("g",), ("b",), {"a", "b", "g"}),
        (("a",), ("b",), {"a", "b", "g"}),
    ],
)
def test_a_generated_column_is_updated_with_what_it_is_computed_of(
    tmp_path: Path, ordering: tuple[str, ...], named: tuple[str, ...] | None, updated: set[str] | None
) -> None:
    schema, storage = SCHEMA.append(pa.field("b", pa.int64())), LocalStorage(str(tmp_path / "t"))
    create_table(storage, TableSpec(name="t", schema=schema, record_key=["id"], ordering_fields=ordering, constraints=GENERATED))
    rows = ArrowInput(schema.empty_table().drop_columns(["g"]))
    given = WriteRequest(WriteOperationType.UPSERT, rows, WriteOptions.read({}), update_columns=named)
    whole = completed(TableState.load(storage), given, None)
    assert (None if whole.update_columns is None else {*whole.update_columns}) == updated
    assert whole.generated == GENERATED.generated
    assert whole.data is not None
    assert whole.data.schema.names == ["id", "a", "b", "g"]


def test_a_caller_cannot_say_that_rows_are_complete(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'generated'"):
        make(tmp_path).upsert(ROWS, generated=GENERATED.generated)


def test_rows_that_others_have_overtaken_are_told_so_first(tmp_path: Path) -> None:
    table = make(tmp_path)
    read = ExpectedState.of(table.state)
    table.delete(pa.table({"id": [1]}))
    with pytest.raises(ChangedSinceReadError, match="Read it again"):
        table.upsert(ROWS, expected=read)


def test_a_write_that_is_there_needs_nothing_computed(tmp_path: Path) -> None:
    table = make(tmp_path, constraints=Constraints())
    table.upsert(ROWS, write_id="one")
    set_constraints(table.storage, lambda _: GENERATED, lock_timeout_ms=1000)
    assert table.upsert(ROWS, write_id="one").was_written
