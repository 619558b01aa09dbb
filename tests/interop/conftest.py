"""Every test here needs a real Hudi: one JVM for each version and test session, never two at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.client import HudiJudge
from tests.interop.judging import VERSIONS, judging
from tests.support.copying import copied
from tests.support.merging import merging
from tests.support.routes import route

__all__ = ["copied", "merging", "route"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session", params=VERSIONS)
def hudi(request: pytest.FixtureRequest) -> Iterator[HudiJudge]:
    """Either Hudi, 1.2.0 told to leave tables at version 6. A test that takes this runs with each; pytest orders them by version."""
    yield from judging(request.param)


@pytest.fixture(scope="module", params=[(6, "0.15.0"), (9, "1.2.0")], ids=["6", "9"])
def judged(request: pytest.FixtureRequest) -> Iterator[tuple[int, HudiJudge]]:
    """A table version, and the Hudi that keeps up metadata tables of tables of that version."""
    version, hudi = request.param
    for judge in judging(hudi, keeps_metadata=True):
        yield version, judge
