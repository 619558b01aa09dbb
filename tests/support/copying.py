"""Chunks of base files are copied from some megabytes on. Here half of the tests have them copied from the first byte.

LAKEHOUSE_COPIED    ALL or LARGE: from the first byte, or as it is, for every test
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_engine.write.tasks import copying
from lakehouse_engine.write.tasks.parquet_output import AssembledParquet, CopiedChunks
from tests.support.halves import from_nothing_on


@pytest.fixture(autouse=True)
def copied(request: pytest.FixtureRequest) -> Iterator[None]:
    """From how many bytes on the writes of this test copy. For folders whose `conftest` imports it."""
    with from_nothing_on(request, copying, "COPIED_FROM", "LAKEHOUSE_COPIED"):
        yield


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[str]]:
    """The columns of each row group that is copied, of files of any size."""
    seen: list[frozenset[str]] = []
    copy = AssembledParquet.copy

    def seeing(self: AssembledParquet, chunks: CopiedChunks, rows: pa.Table) -> None:
        seen.append(chunks.columns)
        copy(self, chunks, rows)

    monkeypatch.setattr(AssembledParquet, "copy", seeing)
    monkeypatch.setattr(copying, "COPIED_FROM", 0)
    return seen
