"""Both routes of a write under the same tests: which test takes which turns with the commit; `make routes` runs all of them in shares.

LAKEHOUSE_ROUTE     LARGE or SMALL: that one for every test
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lakehouse_engine.options.write import BROADCAST_BYTES
from tests.support.shares import TOLD, commit_here, turn

WANTED = os.environ.get("LAKEHOUSE_ROUTE", "")
_TOLD = "writes planned in shares: every other test (all of them: make routes)"


@pytest.fixture(autouse=True)
def route(request: pytest.FixtureRequest) -> Iterator[str]:
    """The route of this test's writes, unless it names one. For folders whose `conftest` imports it."""
    chosen = WANTED or ("LARGE" if int(turn(commit_here(), request.node.nodeid), 16) % 2 else "SMALL")
    if not WANTED and _TOLD not in TOLD:
        TOLD.append(_TOLD)
    before = BROADCAST_BYTES.default
    if chosen == "LARGE":
        object.__setattr__(BROADCAST_BYTES, "default", 0)
    yield chosen
    object.__setattr__(BROADCAST_BYTES, "default", before)
