"""A damaged file of an instant that does not need it is set aside alone."""

from __future__ import annotations

import pytest

from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.verify import verify
from tests.crash.scenarios import COLUMNS, batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import VERSIONS, tables_of, timeline_folder

TIMEOUT = 1000


@pytest.fixture(params=VERSIONS)
def compacted(request: pytest.FixtureRequest) -> LocalTable:
    storage = MemoryStorage()
    with tables_of(request.param):
        create(storage, "mor")
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(3):
        table.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    table.compact()
    table.upsert(batch([("b", 7, "y", "b7")]))
    return table


def test_a_completed_compaction_stays_when_its_plan_is_damaged(compacted: LocalTable) -> None:
    before, storage = compacted.read(["id", *COLUMNS]), compacted.storage
    path = next(entry.path for entry in storage.list(timeline_folder(storage)) if entry.name.endswith(".compaction.requested"))
    instants = compacted.instants()
    storage.overwrite(path, b"torn")
    report = repair(storage, lock_timeout_ms=TIMEOUT)
    assert [one.what for one in report.repaired] == [path]
    assert report.left == ()
    after = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    assert after.instants() == instants
    assert_same_rows(after.read(["id", *COLUMNS]), before)
    assert verify(after.state).ok
