"""The judge can find something: with a guarantee taken away, acknowledged writes are lost or doubled, and histories say so.

Writers that do not lock may happen to miss each other for long: that is for the long form (the explorer makes them meet).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import LakehouseError
from tests.histories.harness import make_history
from tests.histories.judge import Judge
from tests.histories.plans import Plan, Sizes, seed
from tests.support.depth import IS_FULL

_SIZES = Sizes(writers=4, operations=10, readers=1, kills=0, pauses=0, long_pauses=0)
_HISTORIES = 10
"""How often it is tried: processes that happen to miss each other prove nothing."""
_LOST = ("is not there", "has not the rows", "is no state of the table", "could not be", "was committed", "keys stored twice", "saw ")
_TORN = ("two actions at", "without its other states", " follows ")
"""What is wrong with a timeline, or with the file groups that it tells of."""


_EVERY_TIME = [("expected", "list_append", "cow"), ("expected", "bank", "mor")]
_IN_FULL = [("lock", "list_append", "mor"), ("lock", "mixed", "cow"), ("heartbeat", "bank", "cow")]


@pytest.mark.parametrize(
    ("mutant", "workload", "table_type"), [*_EVERY_TIME, *(_IN_FULL if IS_FULL else [])]
)
def test_engine_without_one_guarantee_is_caught(mutant: str, workload: str, table_type: str, tmp_path: Path) -> None:
    first = seed()
    for number in range(_HISTORIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = Plan(workload, table_type, mutant=mutant, sizes=_SIZES, seed=first + number)
        try:
            found = Judge(make_history(plan, folder)).judge()
        except LakehouseError as error:  # what was left keeps the history from its end, which says nothing about rows
            found = [repr(error)]
        print(f"{mutant} {workload} {table_type}: {len(found)} violations, such as {found[:3]}")
        if any(sign in sentence for sentence in found for sign in (*_LOST, *_TORN)):
            return
    pytest.fail(f"{_HISTORIES} histories of an engine without {mutant} were found to be right")
