"""Files of which logs replace rows are linked from a million rows on. Here half of the tests have them linked from the first row.

LAKEHOUSE_NUMBERED    ALL or LARGE: from the first row, or as it is, for every test
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse_engine.spark.frames.replaced import numbered
from tests.support.halves import from_nothing_on


@pytest.fixture(autouse=True)
def numbering(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many rows on reads of this test have files linked. For folders whose `conftest` imports it."""
    with from_nothing_on(request, numbered, "ROWS_FROM", "LAKEHOUSE_NUMBERED"):
        yield


@pytest.fixture
def by_number(numbering: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are."""
    monkeypatch.setattr(numbered, "ROWS_FROM", 0)


@pytest.fixture
def by_position(numbering: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """None are."""
    monkeypatch.setattr(numbered, "MOST_WORDS", 0)
