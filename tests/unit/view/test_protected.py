"""Files that savepoints pin, of all or of those up to an instant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.view.protected import protected_files

ROWS = pa.table({"id": [1]})


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    """With savepoints of its first and third write; each write makes the file group's next base file."""
    made = Lakehouse(str(tmp_path)).create_table("s.t", schema=ROWS.schema, record_key=["id"])
    for number in range(4):
        made.upsert(ROWS)
        if number in (0, 2):
            made.savepoint(name=f"after {number}")
    return made


def test_files_of_later_savepoints_are_not_pinned_as_of_an_earlier_one(table: HoodieTable) -> None:
    first, third = sorted(table.state.timeline.savepointed)
    pinned = protected_files(table.state)
    assert sorted(pinned.values()) == [first, third]
    assert all(instant in path for path, instant in pinned.items())
    before = str(int(first) - 1)
    expected = {before: [], first: [first], third: [first, third]}
    assert {up_to: sorted(protected_files(table.state, up_to=up_to).values()) for up_to in expected} == expected
