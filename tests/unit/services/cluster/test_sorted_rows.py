from __future__ import annotations

import pyarrow as pa

from lakehouse_engine.files.row_pool import SpillTo
from lakehouse_engine.services.cluster.group_rows import GroupRows
from lakehouse_engine.services.cluster.order import SortOrder
from lakehouse_engine.services.cluster.sorted_rows import SortedRows
from lakehouse_engine.storage.memory import MemoryStorage


class Tables(GroupRows):
    """Rows that come from no file: none."""

    def tables(self, columns: object = None) -> object:  # type: ignore[override]
        return iter(())

    def num_base_rows(self) -> int:
        return 0


def test_files_without_row_groups_are_sorted_to_nothing() -> None:
    group = Tables(None, pa.schema([("id", pa.int64())]), ())  # type: ignore[arg-type]
    rows = SortedRows.of(group, SortOrder(("id",)), 2, SpillTo(MemoryStorage(), "spill", 10), 1)
    assert [list(rows.tables(file, 5)) for file in range(2)] == [[], []]
