"""The checker of orders finds those that there are, and no others."""

from __future__ import annotations

import pytest

from tests.support.catalog_model import NOT_FOUND, TAKEN, spread, step
from tests.support.linear import NEVER, Op, is_linear

EMPTY: frozenset[tuple[str, object]] = frozenset()
T = frozenset({("t", frozenset())})


@pytest.mark.parametrize(
    ("ops", "end", "wanted"),
    [
        ([Op("create", ("t",), 1, 2), Op("drop", ("t",), 3, 4)], EMPTY, True),
        ([Op("create", ("t",), 1, 2), Op("drop", ("t",), 3, 4, NOT_FOUND)], T, False),
        ([Op("create", ("t",), 1, 4), Op("drop", ("t",), 2, 3, NOT_FOUND)], T, True),
        ([Op("create", ("t",), 1, 3), Op("create", ("t",), 2, 4)], T, False),
        ([Op("create", ("t",), 1, 3), Op("create", ("t",), 2, 4, TAKEN)], T, True),
        ([Op("create", ("t",), 1, 2), Op("drop", ("t",), 1, NEVER)], T, True),
        ([Op("create", ("t",), 1, 2), Op("drop", ("t",), 1, NEVER)], EMPTY, True),
        ([Op("create", ("t",), 1, 2), Op("drop_schema", ("t",), 3, 4)], T, False),
        ([Op("create", ("t",), 1, 2), Op("drop_schema", ("t",), 3, 8), Op("create", ("t",), 5, 6)], T, True),
        ([Op("create", ("t",), 1, 2), Op("drop_schema", ("t",), 3, 8), Op("create", ("t",), 5, 6)], EMPTY, True),
    ],
)
def test_an_order_is_found_where_there_is_one(ops: list[Op], end: frozenset[tuple[str, object]], wanted: bool) -> None:
    assert is_linear([one for op in ops for one in spread(op, ("t",))], EMPTY, step, end) is wanted
