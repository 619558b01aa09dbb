"""Tables and the schema that hold them come and go in several processes, some of which are killed.

LAKEHOUSE_DEPTH=full has twenty histories of four processes with twenty operations each, and the mutants.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.catalog import CatalogPlan, make_catalog_history
from tests.histories.plans import seed
from tests.support.depth import IS_FULL

_HISTORIES = 20
"""How often it is tried: processes that happen to miss each other prove nothing."""


@pytest.mark.timeout(7200 if IS_FULL else 300)
def test_what_every_process_was_told_could_have_happened_in_some_order(tmp_path: Path) -> None:
    first = seed()
    for number in range(_HISTORIES if IS_FULL else 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = CatalogPlan(4, 20, 2, seed=first + number) if IS_FULL else CatalogPlan(seed=first + number)
        found = make_catalog_history(plan, folder)
        assert not found, "\n".join(found)


@pytest.mark.skipif(not IS_FULL, reason="processes may happen to miss each other for long: LAKEHOUSE_DEPTH=full")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mutant", ["lock", "folder"])
def test_catalog_without_one_rule_is_caught(mutant: str, tmp_path: Path) -> None:
    first = seed()
    for number in range(_HISTORIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        if make_catalog_history(CatalogPlan(4, 20, kills=0, mutant=mutant, seed=first + number), folder):
            return
    pytest.fail(f"{_HISTORIES} histories of a catalog without {mutant} were found to be right")
