"""Commits that savepoints need, kept aside: stored so that no crash leaves half of one that counts."""

from __future__ import annotations

import pytest

from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.storage.faults import FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.kept import KeptCommits

TIME, COMPLETED_AT = "20260101000000001", "20260101000000002"


def states(layout: TableFormat) -> list[Instant]:
    """Of one commit, the completed one last."""
    completed_at = COMPLETED_AT if layout.orders_by_completion else None
    return [Instant(TIME, Action.COMMIT, state, completed_at if state is State.COMPLETED else None) for state in State]


@pytest.fixture(params=[FormatV6(), FormatV8()], ids=["v6", "v8"])
def layout(request: pytest.FixtureRequest) -> TableFormat:
    found: TableFormat = request.param
    return found


def test_a_commit_that_is_kept_halfway_does_not_count(layout: TableFormat) -> None:
    for call in (1, 2, 3):
        storage = MemoryStorage()
        with pytest.raises(SimulatedCrash):
            KeptCommits(FaultyStorage(storage, call), layout).keep([(one, b"content") for one in states(layout)])
        assert KeptCommits(storage, layout).find(TIME) is None
        assert not KeptCommits(storage, layout).put_back(TIME)


def test_a_commit_that_is_put_back_is_completed_from_the_first_file_on(layout: TableFormat) -> None:
    storage = MemoryStorage()
    kept = KeptCommits(storage, layout)
    kept.keep([(one, str(one.state).encode()) for one in states(layout)])
    for call in (1, 2, 3):
        with pytest.raises(SimulatedCrash):
            KeptCommits(FaultyStorage(storage, call), layout).put_back(TIME)
        found = [entry.name for entry in storage.list(layout.timeline_folder) if not entry.is_directory]
        assert not found or layout.file_name(states(layout)[-1]) in found
        for name in found:
            storage.delete(f"{layout.timeline_folder}/{name}")
    assert kept.put_back(TIME)
    assert {storage.read(f"{layout.timeline_folder}/{layout.file_name(one)}") for one in states(layout)} == {
        str(state).encode() for state in State
    }


def test_what_no_savepoint_needs_is_removed(layout: TableFormat) -> None:
    kept = KeptCommits(MemoryStorage(), layout)
    kept.keep([(one, b"content") for one in states(layout)])
    kept.forget_all_but([TIME])
    assert len(kept.states()) == 3
    kept.forget_all_but([])
    assert kept.states() == []
