"""CREATE, SHOW and DROP INDEX, from their text to the table's metadata table; no Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.sql.router import route
from lakehouse_engine.statements.dispatch import HANDLERS
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("Name", pa.string())])


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    create_table(LocalStorage(str(tmp_path)), TableSpec("t", SCHEMA, ["id"], version=TableVersion(request.param)))
    made = HoodieTable.open(str(tmp_path))
    made.insert(pa.table({"id": [1, 2], "Name": ["a", "b"]}, SCHEMA))
    return made


def run(table: HoodieTable, text: str) -> Any:
    def rows(names: Any, found: Any) -> Any:
        return [dict(zip(names, row, strict=True)) for row in found]

    execution: Any = SimpleNamespace(table=lambda parts: table, rows=rows)
    statement = route(text, lambda parts: parts == ("s", "t"))
    return HANDLERS[type(statement)](execution, statement)


def test_indexes_are_created_shown_and_dropped(table: HoodieTable) -> None:
    assert run(table, "show indexes from s.t") == []
    assert run(table, "create index record_index on s.t (ID)") is None
    run(table, "create index if not exists RECORD_INDEX on s.t using record_index (id)")
    columns = "(name)" if int(table.config.version) > 6 else ""
    run(table, f"create index column_stats on table s.t using column_stats {columns}")
    shown = {row["index_name"]: row for row in run(table, "show indexes from s.t")}
    assert set(shown) == {"record_index", "column_stats"}
    assert (shown["record_index"]["col_name"], shown["record_index"]["index_type"]) == ("id", "record_index")
    assert shown["column_stats"]["col_name"].split(",")[-1] == "Name"
    run(table, "drop index record_index on s.t")
    run(table, "drop index if exists record_index on s.t")
    assert [row["index_name"] for row in run(table, "show indexes in s.t")] == ["column_stats"]


def test_an_expression_is_given_by_options(table: HoodieTable) -> None:
    text = "create index low on s.t using column_stats (name) options (expr = 'lower')"
    if int(table.config.version) == 6:
        with pytest.raises(OptionError, match="expression indexes are for table versions 8 and 9"):
            run(table, text)
        return
    run(table, text)
    run(table, "create index b on s.t using bloom_filters (id) options (fpp = '0.01', numentries = '50')")
    shown = {row["index_name"]: row for row in run(table, "show indexes from s.t")}
    assert (shown["low"]["col_name"], shown["low"]["index_type"], shown["low"]["options"]) == ("Name", "column_stats", '{"expr": "lower"}')
    assert (shown["b"]["index_type"], shown["b"]["options"]) == ("bloom_filters", '{"expr": "identity", "fpp": "0.01", "numentries": "50"}')
    run(table, "drop index low on s.t")
    assert [row["index_name"] for row in run(table, "show indexes in s.t")] == ["b"]


def test_a_planned_index_says_so(table: HoodieTable) -> None:
    planned = table.create_index("record_index", op="schedule").instant
    (shown,) = run(table, "show indexes from s.t")
    assert (shown["index_name"], shown["options"]) == ("record_index", f'{{"planned": "{planned}"}}')
    run(table, "drop index record_index on s.t")
    assert run(table, "show indexes from s.t") == []


def test_what_is_there_or_not_is_refused(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="no index 'record_index'"):
        run(table, "drop index record_index on s.t")
    run(table, "create index record_index on s.t (id)")
    with pytest.raises(OptionError, match="already"):
        run(table, "create index record_index on s.t (id)")
