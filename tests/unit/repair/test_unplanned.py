"""A restore of Hudi's that has begun and whose plan is damaged or gone."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import LakehouseError, MetadataError
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.model.plans import HoodieInstantInfo, HoodieRestorePlan
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.verify import verify
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.unit.undo.bringing_back import TIMEOUT

DAMAGES = {"cut": lambda plan: plan[: len(plan) // 2], "emptied": lambda plan: b"", "gone": lambda plan: None}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_it_is_set_aside_and_the_table_is_restored_to_what_was_meant(kind: str, damage: str) -> None:
    storage = MemoryStorage()
    create(storage, kind)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(4):
        table.upsert(batch([("a", version, "x", f"a{version}"), (f"n{version}", 1, "y", "new")]))
    times, written = table.instants(), table.state.timeline.completed().writes().last()
    assert written is not None
    expected = {time: table.read(as_of=time) for time in times}
    # Hudi takes the writes back newest first, and writes nothing into the inflight file.
    ActiveTimeline(storage, table.state.format).delete(written)
    infos = tuple(HoodieInstantInfo(commit_time=time, action=str(written.action)) for time in reversed(times[1:]))
    plan = encode_plan(HoodieRestorePlan(instants_to_rollback=infos, savepoint_to_restore_timestamp=times[0]))
    restore = f".hoodie/{int(times[-1]) + 1}.restore"
    left = DAMAGES[damage](plan)
    if left is not None:
        storage.create(f"{restore}.requested", left)
    storage.create(f"{restore}.inflight", b"")
    with pytest.raises(MetadataError, match="`repair`") as caught:
        table.read()
    assert caught.value.context["path"] == f"{restore}.requested"
    with pytest.raises(LakehouseError):
        table.upsert(batch([("z", 1, "x", "z")]))
    before = {entry.path: storage.read(entry.path) for entry in storage.walk()}
    would = repair(storage, lock_timeout_ms=TIMEOUT, dry_run=True)
    assert {entry.path: storage.read(entry.path) for entry in storage.walk()} == before
    done = repair(storage, lock_timeout_ms=TIMEOUT)
    assert [one.what for one in would.repaired] == [f"{restore}.requested"]
    assert would.repaired[0] in done.repaired
    assert "restore it to the moment that was meant" in would.repaired[0].message
    aside = [storage.read(entry.path) for entry in storage.list(".hoodie/.aux/damaged")]
    assert left is None or left in aside
    assert verify(table.state).findings == ()
    assert_same_rows(table.read(), expected[times[-2]])
    table.restore(to=times[0])
    assert_same_rows(table.read(), expected[times[0]])
    table.upsert(batch([("z", 1, "x", "z")]))
    assert not repair(storage, lock_timeout_ms=TIMEOUT).repaired


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_restore_of_ours_keeps_its_plan_and_is_finished(damage: str) -> None:
    storage = MemoryStorage()
    create(storage)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(3):
        table.upsert(batch([("a", version, "x", f"a{version}")]))
    times = table.instants()
    expected = table.read(as_of=times[0])
    infos = tuple(HoodieInstantInfo(commit_time=time, action="commit") for time in reversed(times[1:]))
    plan = encode_plan(HoodieRestorePlan(instants_to_rollback=infos, savepoint_to_restore_timestamp=times[0]))
    restore = f".hoodie/{int(times[-1]) + 1}.restore"
    left = DAMAGES[damage](plan)
    if left is not None:
        storage.create(f"{restore}.requested", left)
    storage.create(f"{restore}.inflight", plan)
    # Readers go by the plan from the moment on at which the restore has begun, whichever file has it.
    assert_same_rows(table.read(), expected)
    repair(storage, lock_timeout_ms=TIMEOUT)
    assert table.instants() == times[:1]
    assert_same_rows(table.read(), expected)
