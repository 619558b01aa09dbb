"""Participants follow every action that completes, before its completed file is there, and let go of what is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from lakehouse_engine.commit.participants import Outcome, taking_part
from lakehouse_engine.errors import StorageError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.table_state import TableState
from tests.crash.scenarios import batch, copy_of, create
from tests.support.dying_storage import DyingStorage
from tests.support.local_table import LocalTable
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version

__all__ = ["pytest_generate_tests", "table_version"]

pytestmark = pytest.mark.usefixtures("table_version")


@dataclass
class Files:
    """Keeps the sizes of the data files that commits named, by path, as an index by files would."""

    kept: dict[str, dict[str, int]] = field(default_factory=dict)
    followed: list[tuple[Action, type]] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)
    finished: list[Action] = field(default_factory=list)
    fails: bool = False
    cannot_finish: bool = False

    def join(self, state: TableState) -> TableState:
        return state

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        assert instant.state is State.INFLIGHT
        assert state.active.find_completed(instant) is None
        self.followed.append((instant.action, type(outcome)))
        if isinstance(outcome, HoodieCommitMetadata):
            stats = [stat for stat in outcome.write_stats() if stat.path]
            found = [state.storage.head(stat.path or "") for stat in stats]
            assert [entry and entry.size for entry in found] == [stat.file_size_in_bytes for stat in stats]
            self.kept[instant.requested_time] = {stat.path or "": stat.file_size_in_bytes for stat in stats}
        if self.fails:
            raise StorageError("the participant cannot write")

    def finish(self, state: TableState, instant: Instant) -> None:
        assert instant.is_completed
        assert state.active.find_completed(instant) is not None
        self.finished.append(instant.action)
        if self.cannot_finish:
            raise RuntimeError("the participant cannot clean up")

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        self.taken_back += instant_times
        for time in instant_times:
            self.kept.pop(time, None)


@pytest.fixture
def files() -> Iterator[Files]:
    participant = Files()
    with taking_part(participant):
        yield participant


def table_of(table_type: str) -> LocalTable:
    storage = MemoryStorage()
    create(storage, table_type)
    table = LocalTable(storage)
    table.bulk_insert(batch([("a", 1, "x", "a1"), ("b", 1, "y", "b1")]))
    return table


def keeps_what_commits_say(files: Files, table: LocalTable) -> bool:
    state = table.state
    said = {
        instant.requested_time: {stat.path: stat.file_size_in_bytes for stat in state.commit_metadata(instant).write_stats() if stat.path}
        for instant in state.timeline.completed().writes()
    }
    return files.kept == said


def test_each_action_that_completes_is_followed(files: Files) -> None:
    table = table_of("mor")
    table.upsert(batch([("a", 2, "x", "a2")]))
    table.upsert(batch([("a", 3, "x", "a3")]))
    table.schedule_compaction(log_compaction=True)
    table.run_compaction(log_compaction=True)
    table.savepoint(name="kept")
    table.compact()
    table.upsert(batch([("a", 4, "x", "a4")]))
    table.compact()
    table.insert_overwrite(batch([("c", 1, "z", "c1")]))
    table.clean(1)
    assert keeps_what_commits_say(files, table)
    assert table.rollback().instant is not None
    assert keeps_what_commits_say(files, table)
    table.restore("kept", cascade=True)
    assert set(files.followed) == {
        (Action.DELTA_COMMIT, HoodieCommitMetadata),
        (Action.LOG_COMPACTION, HoodieCommitMetadata),
        (Action.COMPACTION, HoodieCommitMetadata),
        (Action.REPLACE_COMMIT, HoodieCommitMetadata),
        (Action.SAVEPOINT, HoodieSavepointMetadata),
        (Action.CLEAN, HoodieCleanMetadata),
        (Action.ROLLBACK, HoodieRollbackMetadata),
        (Action.RESTORE, HoodieRestoreMetadata),
    }
    assert keeps_what_commits_say(files, table)


def test_a_participant_that_fails_fails_the_write_and_lets_go_of_it(files: Files) -> None:
    table = table_of("cow")
    before = table.read()
    files.fails = True
    with pytest.raises(StorageError, match="participant"):
        table.upsert(batch([("a", 2, "x", "a2")]))
    assert table.read() == before
    assert len(files.taken_back) == 1
    assert keeps_what_commits_say(files, table)
    files.fails = False
    table.upsert(batch([("a", 2, "x", "a2")]))
    assert keeps_what_commits_say(files, table)


def test_a_participant_that_cannot_clean_up_does_not_fail_what_is_completed(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of("cow")
    files.cannot_finish = True
    assert table.upsert(batch([("a", 2, "x", "a2")])).instant is not None
    assert files.finished == [Action.COMMIT, Action.COMMIT]
    assert "is completed, but not all could be cleaned up behind it: RuntimeError: the participant cannot clean up" in caplog.text
    assert files.taken_back == []
    table.savepoint(name="kept")
    assert files.finished[2:] == [Action.SAVEPOINT]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_a_dead_write_left_is_let_go_before_its_files_go(files: Files, table_type: str) -> None:
    made = table_of(table_type)
    with taking_part(Files()):
        trial = FaultyStorage(copy_of(made.storage))
        LocalTable(trial).upsert(batch([("a", 2, "x", "a2")]))
    published = next(number for number, call in enumerate(trial.mutations, 1) if call.endswith("commit"))
    files.kept = {time: kept for time, kept in files.kept.items() if time in made.instants()}
    with pytest.raises(SimulatedCrash):
        LocalTable(FaultyStorage(made.storage, published, Fault.CRASH_BEFORE)).upsert(batch([("a", 2, "x", "a2")]))
    (dead,) = files.kept.keys() - set(made.instants())
    made.upsert(batch([("b", 2, "y", "b2")]))
    assert dead in files.taken_back
    assert (Action.ROLLBACK, HoodieRollbackMetadata) in files.followed
    assert keeps_what_commits_say(files, made)


def test_a_clean_that_died_is_followed_again_when_it_is_resumed(files: Files) -> None:
    table = table_of("cow")
    for version in range(2, 5):
        table.upsert(batch([("a", version, "x", f"a{version}")]))
    with pytest.raises(SimulatedCrash):
        LocalTable(DyingStorage(table.storage, r"\.clean$")).clean(1)
    table.clean(1)
    assert files.followed.count((Action.CLEAN, HoodieCleanMetadata)) == 2
    assert table.state.timeline.pending().instants == ()
