"""Which of the two Hudis judges a test in this run: the commit's hash chooses, so that both come up over the commits. And that Hudi."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.interop.client import HudiJudge, why_unavailable
from tests.support.shares import chosen, commit_here, turn

VERSIONS = ("0.15.0", "1.2.0")
VARIABLE = "LAKEHOUSE_INTEROP"
"""Set to anything (`make interop-full` says all) both Hudis judge everything."""


def left_to_the_other(items: Iterable[pytest.Item], commit: str, together: Callable[[pytest.Item], str]) -> list[pytest.Item]:
    """Tests of a Hudi that the commit leaves to others. `together` names what is judged by one Hudi; tests that know but one are kept."""
    groups: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        version = callspec.params.get("hudi") if callspec else None
        if version in VERSIONS:
            groups.setdefault(together(item), {}).setdefault(version, []).append(item)
    found: list[pytest.Item] = []
    for name, by_version in groups.items():
        kept = chosen(sorted(by_version), "", turn(commit, name), 1)
        found += [item for version, its in by_version.items() if version not in kept for item in its]
    return found


def without_version(item: pytest.Item) -> str:
    """The same for the two tests that differ in nothing but the Hudi."""
    return item.nodeid.replace(item.callspec.params["hudi"], "", 1)  # type: ignore[attr-defined]


def take_one_hudi(
    config: pytest.Config, items: list[pytest.Item], among: Iterable[pytest.Item], together: Callable[[pytest.Item], str] = without_version
) -> None:
    """Deselect of `among` what this commit leaves to others."""
    left_out = set() if os.environ.get(VARIABLE) else set(left_to_the_other(among, commit_here(), together))
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def judging(version: str) -> Iterator[HudiJudge]:
    """What a fixture yields: Hudi of that version, in a process of its own; skips where it cannot be had."""
    reason = why_unavailable(version)
    if reason is not None:
        pytest.skip(reason)
    with HudiJudge(version) as judge:
        yield judge
