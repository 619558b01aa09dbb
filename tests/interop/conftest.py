"""Every test here needs a real Hudi: one JVM for each version and test session, never two at a time.

The commit's hash chooses a share of the largest matrices, for every other test one of the two Hudis, and of all of these a half;
`make interop-full` (LAKEHOUSE_INTEROP=all) runs all of them with both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.interop.client import HudiJudge
from tests.interop.share import VERSIONS, judging, take_one_hudi
from tests.support.copying import copied
from tests.support.merging import merging
from tests.support.numbering import numbering
from tests.support.routes import route
from tests.support.shares import chosen, commit_here, keep_share

__all__ = ["copied", "merging", "numbering", "route"]

HERE = Path(__file__).parent
MATRICES = {"test_payloads.py": 6, "test_key_forms.py": 8}
"""Files whose tests are many of a kind, with how many of them a run has."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
    asked = [item for item in items if item.path.parent == HERE and item.path.name in MATRICES]
    kept = _share(asked)
    left_out = [item for item in asked if item.name not in kept[item.path.name]]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    others = [item for item in items if item.path.parent == HERE and item.path.name not in MATRICES]
    take_one_hudi(config, items, others)
    kept_here = [item for item in items if item.path.parent == HERE]
    keep_share(config, kept_here, HERE, "interop", Fraction(1, 2), variable="LAKEHOUSE_INTEROP", full="make interop-full")
    items[:] = [item for item in items if item.path.parent != HERE or item in kept_here]


def _share(items: list[pytest.Item]) -> dict[str, list[str]]:
    """Names of the tests that this run has, by file."""
    wanted, commit = os.environ.get("LAKEHOUSE_INTEROP", ""), commit_here()
    names = {file: [item.name for item in items if item.path.name == file] for file in MATRICES}
    return {file: chosen(found, wanted, commit, MATRICES[file]) for file, found in names.items()}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Another commit has another share."""
    if not os.environ.get("LAKEHOUSE_INTEROP"):
        terminalreporter.write_line(
            f"interop: a share of {', '.join(MATRICES)}, others with one of the two Hudis each (all of it: make interop-full)"
        )


@pytest.fixture(scope="session", params=VERSIONS)
def hudi(request: pytest.FixtureRequest) -> Iterator[HudiJudge]:
    """Either Hudi, 1.2.0 told to leave tables at version 6. A test that takes this runs with each; pytest orders them by version."""
    yield from judging(request.param)
