"""A statement as it is read, and as it would be if its conditions ruled nothing out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.spark.frames import statement_views
from lakehouse_engine.sql.binding.needs import EVERYTHING
from tests.support.readers import assert_same_rows


def assert_same_unnarrowed(
    lakehouse: Lakehouse, texts: Iterable[str], refused: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement has the rows that it has unnarrowed, and some are narrowed. `refused` is what those raise that Spark does not take."""
    count = 0
    for text in texts:
        try:
            found, is_narrowed = _narrowed(lakehouse, text)
        except refused:
            continue
        count += is_narrowed
        assert_same_rows(found, _unnarrowed(lakehouse, text, monkeypatch), what=text)
    assert count


def _narrowed(lakehouse: Lakehouse, text: str) -> tuple[pa.Table, bool]:
    """Its rows, and whether one of its readings was narrowed."""
    seen: list[Any] = []
    reading = lakehouse.reading()
    reading._run.reads.seen = seen
    found = reading.sql(text).toArrow()
    return found, any(one.condition is not None for one in seen)


def _unnarrowed(lakehouse: Lakehouse, text: str, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    original = statement_views.Pins._scan

    def everything(self: Any, name: Any, reads: Any, query: Any, needs: Any, **more: Any) -> Any:
        return original(self, name, reads, query, EVERYTHING, **more)

    with monkeypatch.context() as patched:
        patched.setattr(statement_views.Pins, "_scan", everything)
        return lakehouse.sql(text).toArrow()
