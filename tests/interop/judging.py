"""The Apache Hudis that judge, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.client import HudiJudge, why_unavailable

VERSIONS = ("0.15.0", "1.2.0")


def judging(version: str) -> Iterator[HudiJudge]:
    """What a fixture yields: Hudi of that version; skips where it cannot be had."""
    reason = why_unavailable(version)
    if reason is not None:
        pytest.skip(reason)
    with HudiJudge(version) as judge:
        yield judge
