"""All scenarios on all their table types, in versions 6 and 9."""

from __future__ import annotations

from tests.explorer.run import Case
from tests.explorer.scenarios import SCENARIOS
from tests.support.versions import VERSIONS

CASES = tuple(Case(scenario, kind, version) for version in VERSIONS for scenario in SCENARIOS for kind in scenario.kinds)
