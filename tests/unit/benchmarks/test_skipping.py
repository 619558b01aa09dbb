"""What the benchmark of skipping expects, and how it shows what it found."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.skipping import _QUESTIONS, _arrow, _rendered, _the_key

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("price", pa.float64()), ("day", pa.date32())])


@pytest.mark.parametrize("rows", [1000, 30])
@pytest.mark.parametrize("question", list(_QUESTIONS))
def test_the_expected_answer_is_that_of_the_rows(question: str, rows: int) -> None:
    asked, table = _QUESTIONS[question], _arrow(SCHEMA, range(12), rows, rows)
    assert table.num_rows == 12 * rows
    if asked.key:
        table = table.filter(pc.field("id") == _the_key(rows))
    elif asked.days is not None:
        numbers = pc.divide(table["id"], rows)
        table = table.filter(pc.is_in(numbers, pa.array(asked.days, pa.int64())))
    found = [float(table.num_rows), *(float(pc.sum(table[name]).as_py()) for name in ("n", "price"))]
    assert asked.expected(12, rows) == found


def test_the_table_shows_files_opened_beside_those_that_match() -> None:
    cell = {"cold": 1.0, "warm": 0.2, "files": 1, "calls": [{"head": 3}, {"head": 1}], "answer": []}
    floor = {**cell, "warm": 0.1, "calls": [], "files": 1000}
    lines = _rendered({"one key, SQL": {"parquet": floor, "cow": cell}}, 1000)
    assert lines[-2].split(" | ")[4:7] == ["1.00", "1000", "1"]
    assert lines[-1].split(" | ")[4:] == ["2.00", "1", "1", "3 (3 head) / 1 (1 head) |"]
