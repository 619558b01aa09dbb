"""Which partitions a condition confines a statement to, as far as that does not hang on settings of the session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.sql.binding.partitions_read import partitions_read
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table


@pytest.fixture
def state() -> TableState:
    storage = MemoryStorage()
    schema = pa.schema([("id", pa.int64()), ("day", pa.string()), ("x", pa.string())])
    create_table(storage, TableSpec("t", schema, ["id"], [], ["day"], "mor"))
    return TableState.load(storage)


def test_a_literal_in_single_quotes_is_a_value(state: TableState) -> None:
    assert partitions_read("day = 'a' and x > 'b'", "t", state) == {"day=a"}


# Column `x` where `spark.sql.ansi.doubleQuotedIdentifiers` is set, and text as it stands under `spark.sql.parser.escapedStringLiterals`.
@pytest.mark.parametrize("condition", ['day = "x"', r"day = 'a\tb'", "day = 'a''b'"])
def test_what_settings_make_something_else_of_confines_to_nothing(condition: str, state: TableState) -> None:
    assert partitions_read(condition, "t", state) is None
