"""All scenarios on all their table types."""

from __future__ import annotations

from tests.explorer.at_once import AT_ONCE
from tests.explorer.run import Case
from tests.explorer.scenarios import SCENARIOS

CASES = tuple(Case(scenario, kind) for scenario in (*SCENARIOS, *AT_ONCE) for kind in scenario.kinds)
