"""Small slices with logs are merged for Spark, and nearly all tables of tests are small. Here half of the tests have them merged.

LAKEHOUSE_MERGED    ALL or NONE: merged, or not, for every test
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakehouse_engine.spark.frames.logged import merged_files
from lakehouse_engine.spark.frames.logged.weights import Weight
from tests.support.halves import uses

NONE = Weight(0, 0, 0, 0)
_MOST = merged_files.MOST_AT_ONCE


@pytest.fixture(autouse=True)
def merging(request: pytest.FixtureRequest) -> Iterator[None]:
    """What this test has merged. For folders whose `conftest` imports it."""
    merges = uses(request, "merged", "LAKEHOUSE_MERGED")
    merged_files.MOST_AT_ONCE = _MOST if merges else NONE
    yield
    merged_files.MOST_AT_ONCE = _MOST


@pytest.fixture
def unmerged(merging: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No slice is merged."""
    monkeypatch.setattr(merged_files, "MOST_AT_ONCE", NONE)


@pytest.fixture
def merged(merging: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small slices are merged."""
    monkeypatch.setattr(merged_files, "MOST_AT_ONCE", _MOST)
