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


def states(table_format: TableFormat) -> list[Instant]:
    """Of one commit, the completed one last."""
    completed_at = COMPLETED_AT if table_format.orders_by_completion else None
    return [Instant(TIME, Action.COMMIT, state, completed_at if state is State.COMPLETED else None) for state in State]


@pytest.fixture(params=[FormatV6(), FormatV8()], ids=["v6", "v8"])
def table_format(request: pytest.FixtureRequest) -> TableFormat:
    found: TableFormat = request.param
    return found


def test_a_commit_that_is_kept_halfway_does_not_count(table_format: TableFormat) -> None:
    for call in (1, 2, 3):
        storage = MemoryStorage()
        with pytest.raises(SimulatedCrash):
            KeptCommits(FaultyStorage(storage, call), table_format).keep([(one, b"content") for one in states(table_format)])
        assert KeptCommits(storage, table_format).find(TIME) is None
        assert not KeptCommits(storage, table_format).put_back(TIME)


def test_a_commit_that_is_put_back_is_completed_from_the_first_file_on(table_format: TableFormat) -> None:
    storage = MemoryStorage()
    kept = KeptCommits(storage, table_format)
    kept.keep([(one, str(one.state).encode()) for one in states(table_format)])
    for call in (1, 2, 3):
        with pytest.raises(SimulatedCrash):
            KeptCommits(FaultyStorage(storage, call), table_format).put_back(TIME)
        found = [entry.name for entry in storage.list(table_format.timeline_folder) if not entry.is_directory]
        assert not found or table_format.file_name(states(table_format)[-1]) in found
        for name in found:
            storage.delete(f"{table_format.timeline_folder}/{name}")
    assert kept.put_back(TIME)
    assert {storage.read(f"{table_format.timeline_folder}/{table_format.file_name(one)}") for one in states(table_format)} == {
        str(state).encode() for state in State
    }


def test_what_no_savepoint_needs_is_removed(table_format: TableFormat) -> None:
    kept = KeptCommits(MemoryStorage(), table_format)
    kept.keep([(one, b"content") for one in states(table_format)])
    kept.forget_all_but([TIME])
    assert len(kept.states()) == 3
    kept.forget_all_but([])
    assert kept.states() == []
