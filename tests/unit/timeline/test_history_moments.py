"""When archived instants of later versions show."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.model.instant import Action
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import fixtures_root, unpack_spark_fixture


@pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
def test_an_archived_compaction_shows_when_it_was_planned_and_other_writes_when_they_were_completed(tmp_path: Path) -> None:
    state = TableState.load(LocalStorage(str(unpack_spark_fixture("v9-1.2.0/mor_archive", tmp_path))))
    history = state.archived_timeline
    assert isinstance(history, LsmHistory)
    moments, writes = history.moments(), [one for one in history.instants() if one.action.is_write]
    compactions = [one for one in writes if one.action is Action.COMMIT]
    assert compactions
    assert len(compactions) < len(writes)
    assert all(moments[one.requested_time] == one.requested_time for one in compactions)
    assert all(moments[one.requested_time] == one.completed_at for one in writes if one.action is not Action.COMMIT)
