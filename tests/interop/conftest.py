"""Every test here needs a real Hudi: one JVM for each version and test session, started when the first test asks for it."""

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


def _judge(version: str) -> Iterator[HudiJudge]:
    reason = why_unavailable(version)
    if reason is not None:
        pytest.skip(reason)
    with HudiJudge(version) as judge:
        yield judge


@pytest.fixture(scope="session")
def hudi_015() -> Iterator[HudiJudge]:
    """Apache Hudi 0.15.0."""
    yield from _judge("0.15.0")


@pytest.fixture(scope="session")
def hudi_120() -> Iterator[HudiJudge]:
    """Apache Hudi 1.2.0, told to leave tables at version 6."""
    yield from _judge("1.2.0")


@pytest.fixture(params=["0.15.0", "1.2.0"])
def hudi(request: pytest.FixtureRequest) -> HudiJudge:
    """Either Hudi; a test that takes this runs once with each."""
    judge: HudiJudge = request.getfixturevalue({"0.15.0": "hudi_015", "1.2.0": "hudi_120"}[request.param])
    return judge
