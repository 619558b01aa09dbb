"""Every test here needs a real Hudi: one JVM for each version and test session, never two at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.client import HudiJudge, why_unavailable

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session", params=["0.15.0", "1.2.0"])
def hudi(request: pytest.FixtureRequest) -> Iterator[HudiJudge]:
    """Either Hudi, 1.2.0 told to leave tables at version 6. A test that takes this runs with each; pytest orders them by version."""
    reason = why_unavailable(request.param)
    if reason is not None:
        pytest.skip(reason)
    with HudiJudge(request.param) as judge:
        yield judge
