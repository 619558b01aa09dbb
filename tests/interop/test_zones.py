"""Tables of the zone LOCAL that Apache Hudi and a process of ours in another zone write in turns: what is written last is what is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.commit import table_clock
from lakehouse_engine.compat import UTC
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.timeline.clock import InstantClock
from tests.interop.client import HudiJudge
from tests.support.readers import assert_same_rows

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "v",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.metadata.enable": "false",
}


def batch(v: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "v": pa.array([v, v], pa.int64()), "p": ["x", "x"]})


def values(table: HoodieTable) -> list[int]:
    found: list[int] = table.to_arrow(["v"]).column(0).to_pylist()
    return found


@pytest.fixture
def tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    def go() -> None:
        monkeypatch.setattr(clock._PROCESS, "by_clock", {})
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()

    yield go
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_next_upsert_is_seen_after_one_of_ours_from_another_zone(
    hudi: HudiJudge, table_type: str, tmp_path: Path, tokyo: Callable[[], None]
) -> None:
    path, written = tmp_path / "t", {**OPTIONS, "hoodie.datasource.write.table.type": table_type}
    for v in (1, 2):
        hudi.write(path, batch(v), written)
    tokyo()
    table = HoodieTable.open(str(path))
    assert table.config.timeline_timezone == "LOCAL"
    table.upsert(batch(3))
    hudi.write(path, batch(4), written)
    assert values(table) == [4, 4]
    table.upsert(batch(5))
    assert values(table) == [5, 5]
    assert_same_rows(hudi.read(path), table.to_arrow(meta_columns=True))


@pytest.fixture
def own_hudi(hudi: HudiJudge) -> Iterator[HudiJudge]:
    """A JVM of its own: whatever a Hudi that has seen an instant of the future writes later, to any table, comes after that."""
    with HudiJudge(hudi.version, memory="1g") as judge:
        yield judge


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_what_was_written_behind_an_accepted_future(
    own_hudi: HudiJudge, table_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hudi = own_hudi
    # And so does this process, by its own clock.
    monkeypatch.setattr(clock._PROCESS, "by_clock", {})
    path, written = tmp_path / "t", {**OPTIONS, "hoodie.datasource.write.table.type": table_type}
    hudi.write(path, batch(1), written)
    table = HoodieTable.open(str(path))
    first = table.timeline.completed().writes().instants[-1].requested_time
    with monkeypatch.context() as patched:
        patched.setattr(table_clock, "SKEW_REFUSED", timedelta(days=9999))
        later = lambda: datetime.now(UTC) + timedelta(days=3653)  # noqa: E731
        patched.setattr(table_clock, "InstantClock", lambda *given, **more: InstantClock(*given, now=later))
        table.upsert(batch(2))
    assert table.repair(accept_future=True).repaired
    table.upsert(batch(3))
    table.clean(retain_commits=2)
    assert values(table) == [3, 3]
    assert_same_rows(hudi.read(path), table.to_arrow(meta_columns=True))
    table.restore(to=first)
    assert values(table) == [1, 1]
    assert_same_rows(hudi.read(path), table.to_arrow(meta_columns=True))
