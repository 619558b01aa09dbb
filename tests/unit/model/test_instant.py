from __future__ import annotations

import pickle

import pytest

from lakehouse_engine.errors import TimelineError
from lakehouse_engine.model.instant import Action, Instant, State

_TIME, _LATER = "20240101000000000", "20240101000001000"


def test_completion_time_is_no_part_of_identity() -> None:
    known, named = Instant(_TIME, Action.COMMIT, State.COMPLETED, _LATER), Instant(_TIME, Action.COMMIT, State.COMPLETED)
    assert known == named
    assert hash(known) == hash(named)
    assert pickle.loads(pickle.dumps(known)).completed_at == _LATER


def test_completion_time_stays_with_the_completed_state() -> None:
    completed = Instant(_TIME, Action.COMMIT, State.COMPLETED, _LATER)
    assert completed.at(State.COMPLETED).completed_at == _LATER
    assert completed.at(State.INFLIGHT).completed_at is None


def test_clustering_completes_as_replacecommit() -> None:
    assert Instant(_TIME, Action.CLUSTERING, State.INFLIGHT).at(State.COMPLETED).action is Action.REPLACE_COMMIT
    assert Action.CLUSTERING.is_write


@pytest.mark.parametrize(("state", "completed_at"), [(State.INFLIGHT, _LATER), (State.COMPLETED, "later"), (State.COMPLETED, "")])
def test_impossible_completion_times_are_refused(state: State, completed_at: str) -> None:
    with pytest.raises(TimelineError, match="completion time"):
        Instant(_TIME, Action.COMMIT, state, completed_at)
