"""Changes of a range that ends before a column got another type: Spark has the rows that Arrow has, or a typed error."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.table import HoodieTable


def replaced(lakehouse: Lakehouse, kind: str, before: pa.Array, after: pa.Array) -> tuple[HoodieTable, dict[str, Any]]:
    """A table whose column `v` was of another type, and the range before."""
    keys = pa.array([1, 2], pa.int32())
    old, new = pa.table({"k": keys, "v": before}), pa.table({"k": keys, "v": after})
    table = lakehouse.create_table("shop.t", schema=old.schema, record_key=["k"], table_type=kind)
    begin, end = table.upsert(old).instant, table.upsert(old).instant
    table.insert_overwrite_table(new, replace_schema=True)
    return table, {"query": "incremental", "begin": begin, "end": end}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    "before",
    [pa.array([7, None], pa.int32()), pa.array([-8, None], pa.int64()), pa.array([1.5, None])],
    ids=["int", "long", "double"],
)
def test_numbers_that_are_text_now(lakehouse: Lakehouse, kind: str, before: pa.Array) -> None:
    table, changes = replaced(lakehouse, kind, before, pa.array(["x", None]))
    rows = table.to_arrow(**changes).to_pylist()
    assert table.dataframe(**changes).toArrow().to_pylist() == rows
    changed = lakehouse.sql(f"select k, v from hudi_table_changes('shop.t', 'latest_state', '{changes['begin']}', '{changes['end']}')")
    assert changed.toArrow().to_pylist() == rows


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.array([7, None], pa.int32()), pa.array([0, None], pa.date32())),
        (pa.array([0, None], pa.date32()), pa.array([7, None], pa.int64())),
        (pa.array([1, None]).cast(pa.decimal128(38, 2)), pa.array([b"x", None])),
        (pa.array(["x", None]), pa.array([7, None], pa.int32())),
    ],
    ids=["int to date", "date to long", "decimal to binary", "text to int"],
)
def test_types_that_do_not_take_the_values_are_refused(lakehouse: Lakehouse, kind: str, before: pa.Array, after: pa.Array) -> None:
    table, changes = replaced(lakehouse, kind, before, after)
    with pytest.raises(SchemaIncompatibleError, match="'v'"):
        table.to_arrow(**changes)
    with pytest.raises(SchemaIncompatibleError, match=r"the column 'v' was .* at the end of the range"):
        table.dataframe(**changes)
    with pytest.raises(SchemaIncompatibleError, match=r"the column 'v' was .* at the end of the range"):
        lakehouse.sql(f"select k, v from hudi_table_changes('shop.t', 'latest_state', '{changes['begin']}', '{changes['end']}')")
    assert table.to_arrow(["k"], **changes).num_rows == 2
    newest = {**changes, "end": None}
    assert sorted(table.dataframe(**newest).toArrow()["k"].to_pylist()) == [1, 2]
    assert table.dataframe(as_of=changes["end"]).toArrow()["v"].to_pylist() == before.to_pylist()
