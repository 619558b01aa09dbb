"""Keys are joined from some tens of thousands on. Here every other test has them joined however few there are.

LAKEHOUSE_JOINED    ALL or LARGE: however few, or as it is, for every test
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lakehouse_engine.record import matching
from tests.support.shares import TOLD, commit_here, turn

WANTED = os.environ.get("LAKEHOUSE_JOINED", "")
_TOLD = "keys that are joined, however few: every other test"


@pytest.fixture(autouse=True)
def joined(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many keys on this process joins them."""
    if not WANTED and _TOLD not in TOLD:
        TOLD.append(_TOLD)
    before = matching.JOINED
    if (WANTED or ("ALL" if int(turn(commit_here(), f"joined {request.node.nodeid}"), 16) % 2 else "LARGE")) == "ALL":
        matching.JOINED = 0
    yield
    matching.JOINED = before
