"""The share of files that a filter opens, by their bounds."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.services.cluster.skipping import Bounds, share
from tests.support.local_table import LocalTable
from tests.unit.services.clean.tables import COW, new_table
from tests.unit.services.cluster.test_run import SMALL


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ([(0, 9)], 1.0),
        ([(0, 9), (0, 9)], 1.0),
        ([(0, 4), (5, 9)], 0.5),
        ([(0, 4), (4, 9)], 0.75),
        ([("a", "c"), ("d", "f"), ("g", "i"), ("a", "i")], 0.5),
    ],
)
def test_share(bounds: list[Bounds], found: float) -> None:
    """The last: of the four least values a opens two files, d and g two each, and the second a two."""
    assert share(bounds) == found


def test_a_clustering_tells_what_became_of_it() -> None:
    table: LocalTable = new_table(COW, SMALL)
    for first in range(4):
        numbers = list(range(first, 64, 4))
        n = pa.array(numbers, pa.int64())
        table.insert(pa.table({"id": n, "part": ["a"] * len(numbers), "n": n}))
    result = table.cluster("n", target_file_bytes=sum(one.size for one in table.state.view.latest_slices()) // 4 + 1)
    assert (result.files_replaced, result.files_created) == (4, 4)
    assert (result.opened_before, result.opened_after) == ({"n": 0.625}, {"n": 0.25})
