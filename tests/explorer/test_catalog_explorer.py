"""Schemas, tables and views that come and go beside those who use them, in every order of calls that there is time for.

LAKEHOUSE_DEPTH=full goes deeper.
"""

from __future__ import annotations

import os

import pytest

from tests.explorer.catalog import CASES, CatalogCase
from tests.explorer.catalog_mutants import MUTANTS, Mutant
from tests.explorer.explore import Found, explore
from tests.explorer.run import run
from tests.support.depth import IS_FULL

FEW, MANY = 6, int(os.environ.get("LAKEHOUSE_EXPLORER_SCHEDULES", "400"))
"""Schedules of a case."""
BY_NAME = {str(case): case for case in CASES}
SCHEDULES = 300


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_everybody_was_told_could_have_happened_in_some_order(case: CatalogCase) -> None:
    report = explore(case, schedules=MANY if IS_FULL else FEW)
    print(report)
    if report.found is not None:
        raise Found(report.found)


@pytest.mark.parametrize(("mutant", "name"), MUTANTS, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_mutant_is_caught(mutant: Mutant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME[name]
    mutant(monkeypatch)
    report = explore(case, schedules=SCHEDULES)
    monkeypatch.undo()
    assert report.found is not None, str(report)
    print(f"{mutant.__name__}: {report.schedules} schedules, {report.found.violation!r}"[:300])
    assert run(case, report.found.schedule).violation is None, "the rule is not what makes the difference"
