"""The explorer is worth something: with each of these rules taken away it finds a violation."""

from __future__ import annotations

import pytest

from tests.explorer.cases import CASES
from tests.explorer.explore import explore
from tests.explorer.mutants import MUTANTS, Mutant
from tests.explorer.run import run

BY_NAME = {str(case): case for case in CASES}
SCHEDULES = 60
_ONLY_IN_9 = "at once: "
"""In version 6 writers take turns."""
CAUGHT = [
    (mutant, name + version)
    for mutant, name in MUTANTS
    for version in ("", ", v9")
    if version or not name.startswith(_ONLY_IN_9)
]


@pytest.mark.parametrize(("mutant", "name"), CAUGHT, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_mutant_is_caught(mutant: Mutant, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME[name]
    assert explore(case, schedules=1).found is None
    mutant(monkeypatch)
    report = explore(case, schedules=SCHEDULES)
    monkeypatch.undo()
    assert report.found is not None, str(report)
    print(f"{mutant.__name__}: {report.schedules} schedules, {report.found.violation!r}"[:300])
    assert run(case, report.found.schedule).violation is None, "the rule is not what makes the difference"
