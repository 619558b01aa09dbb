"""The Apache Hudis that judge, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.client import HudiJudge, bundle_jar, why_unavailable

VERSIONS = ("0.15.0", "1.2.0")


def judging(version: str, *, keeps_metadata: bool = False) -> Iterator[HudiJudge]:
    """What a fixture yields: Hudi of that version; skips where it cannot be had.

    `keeps_metadata`: it writes tables of its own version, and reads and keeps up their metadata tables, for which all classes have to come
    from one class loader.
    """
    reason = why_unavailable(version)
    if reason is not None:
        pytest.skip(reason)
    conf = {"spark.driver.extraClassPath": str(bundle_jar(version))} if keeps_metadata else {}
    with HudiJudge(version, keep_version=not keeps_metadata, conf=conf) as judge:
        yield judge
