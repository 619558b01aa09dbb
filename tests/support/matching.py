"""Keys are joined from some tens of thousands on. Here half of the tests have them joined however few there are.

LAKEHOUSE_JOINED    ALL or LARGE: however few, or as it is, for every test
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse_engine.record import matching
from tests.support.halves import from_nothing_on


@pytest.fixture(autouse=True)
def joined(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many keys on this process joins them."""
    with from_nothing_on(request, matching, "JOINED", "LAKEHOUSE_JOINED"):
        yield
