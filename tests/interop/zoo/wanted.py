"""Which kinds a run visits: all that were tried, or what LAKEHOUSE_ZOO names."""

from __future__ import annotations

import os

from tests.interop.zoo.kinds import EVERY, of_makers

UNTRIED = "untried"


def wanted(asked: str) -> list[str]:
    """Names of kinds. `asked`: nothing, "untried", or names with commas between. Raises ValueError for a name that is of no kind."""
    if not asked or asked == UNTRIED:
        return list(of_makers(tried=not asked))
    names = asked.split(",")
    missing = sorted(set(names) - set(EVERY))
    if missing:
        raise ValueError(f"{missing} is no kind of table; there are: {', '.join(EVERY)}")
    return names


ASKED = os.environ.get("LAKEHOUSE_ZOO", "")
CANDIDATES = EVERY if ASKED not in ("", UNTRIED) else of_makers(tried=not ASKED)
VISITED = wanted(ASKED)
