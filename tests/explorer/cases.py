"""All scenarios on all their table types, in versions 6 and 9; those of writers at once in version 9 only."""

from __future__ import annotations

from tests.explorer.at_once import AT_ONCE
from tests.explorer.indexed import INDEXED
from tests.explorer.run import Case
from tests.explorer.scenarios import SCENARIOS
from tests.explorer.services import SERVICES, SERVICES_AT_ONCE
from tests.support.versions import VERSIONS

CASES = (
    *(Case(scenario, kind, version) for version in VERSIONS for scenario in (*SCENARIOS, *SERVICES, *INDEXED) for kind in scenario.kinds),
    *(Case(scenario, kind, 9) for scenario in (*AT_ONCE, *SERVICES_AT_ONCE) for kind in scenario.kinds),
)
