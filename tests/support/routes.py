"""Both routes of a write under the same tests: half of the tests, by their names, take one; `make nightly` runs all of them by both.

LAKEHOUSE_ROUTE     LARGE or SMALL: that one for every test
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lakehouse_engine.options.write import BROADCAST_BYTES
from tests.support.halves import is_in_first_half

WANTED = os.environ.get("LAKEHOUSE_ROUTE", "")


@pytest.fixture(autouse=True)
def route(request: pytest.FixtureRequest) -> Iterator[str]:
    """The route of this test's writes, unless it names one. For folders whose `conftest` imports it."""
    chosen = WANTED or ("LARGE" if is_in_first_half("route", request.node.nodeid) else "SMALL")
    before = BROADCAST_BYTES.default
    if chosen == "LARGE":
        object.__setattr__(BROADCAST_BYTES, "default", 0)
    yield chosen
    object.__setattr__(BROADCAST_BYTES, "default", before)
