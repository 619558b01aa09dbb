"""Which partitions a condition confines a statement to, as far as that does not hang on settings of the session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.sql.binding.partitions_read import partitions_read
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable


@pytest.fixture
def state() -> TableState:
    storage = MemoryStorage()
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.string())])
    create_table(storage, TableSpec("t", schema, ["id"], [], ["day"], "mor"))
    return TableState.load(storage)


def test_a_literal_in_single_quotes_is_a_value(state: TableState) -> None:
    assert partitions_read("day = 'a' and x > 'b'", "t", state) == {"day=a"}


def test_rows_that_may_be_elsewhere_than_their_columns_say_confine_to_nothing() -> None:
    storage = MemoryStorage()
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    properties = {"hoodie.simple.index.update.partition.path": "false"}
    table = LocalTable(storage, properties)
    create_table(storage, TableSpec("t", schema, ["id"], [], ["day"], "cow"))
    table.insert(pa.table([[1], ["a"]], schema=schema))
    table.upsert(pa.table([[1], ["b"]], schema=schema))
    assert partitions_read("day = 'b'", "t", TableState.load(storage)) is None


# Column `x` where `spark.sql.ansi.doubleQuotedIdentifiers` is set, and text as it stands under `spark.sql.parser.escapedStringLiterals`.
@pytest.mark.parametrize("condition", ['day = "x"', r"day = 'a\tb'", "day = 'a''b'"])
def test_what_settings_make_something_else_of_confines_to_nothing(condition: str, state: TableState) -> None:
    assert partitions_read(condition, "t", state) is None


@pytest.mark.parametrize("condition", ["day = '__HIVE_DEFAULT_PARTITION__'", "n = 3000000000", "n in (1, 3000000000)"])
def test_values_that_no_row_has_are_asked_for_as_any_other(condition: str) -> None:
    storage = MemoryStorage()
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int32())])
    create_table(storage, TableSpec("t", schema, ["id"], [], [condition.split()[0]], "cow"))
    assert partitions_read(condition, "t", TableState.load(storage)) is None


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("d = date '2026-01-02' and n = -1", {"d=2026-01-02/n=-1"}),
        ("d = '2026-01-02' and n = 1", None),
        ("d in (date '2026-01-02') and n = '1'", None),
    ],
)
def test_a_value_is_a_literal_of_the_columns_own_type(condition: str, found: set[str] | None) -> None:
    storage = MemoryStorage()
    schema = pa.schema([("id", pa.int64()), ("d", pa.date32()), ("n", pa.int32())])
    properties = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    create_table(storage, TableSpec("t", schema, ["id"], [], ["d", "n"], "cow", properties=properties))
    assert partitions_read(condition, "t", TableState.load(storage)) == found
