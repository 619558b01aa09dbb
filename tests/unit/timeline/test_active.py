from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse_engine.errors import (
    CommitOutcomeUnknownError,
    IllegalTransitionError,
    InstantNotFoundError,
    StorageError,
    StoredFileExistsError,
)
from lakehouse_engine.format.v6.layout_v1 import LayoutV1
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.active import ActiveTimeline

T1, T2 = "20260101000000001", "20260101000000002"


def requested(action: Action = Action.COMMIT, time: str = T1) -> Instant:
    return Instant(time, action, State.REQUESTED)


def active(storage: Storage) -> ActiveTimeline:
    return ActiveTimeline(storage, LayoutV1())


@pytest.fixture
def storage() -> MemoryStorage:
    return table_storage()


def table_storage() -> MemoryStorage:
    storage = MemoryStorage()
    storage.create(".hoodie/hoodie.properties", b"")
    return storage


def files(storage: Storage) -> list[str]:
    return [entry.name for entry in storage.list(".hoodie") if entry.name != "hoodie.properties"]


def test_instant_goes_through_all_three_states_and_every_file_stays(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested()), b"{}")
    completed = timeline.complete(inflight, b'{"a": 1}', None)
    assert completed == Instant(T1, Action.COMMIT, State.COMPLETED)
    assert files(storage) == [f"{T1}.commit", f"{T1}.commit.requested", f"{T1}.inflight"]
    assert timeline.load().instants == (completed,)
    assert timeline.read(completed) == b'{"a": 1}'
    assert timeline.read(inflight) == b"{}"


def test_compaction_completes_as_a_commit(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested(Action.COMPACTION), b"plan"))
    assert timeline.complete(inflight, b"{}", None).action is Action.COMMIT
    assert files(storage) == [f"{T1}.commit", f"{T1}.compaction.inflight", f"{T1}.compaction.requested"]


def test_savepoint_has_no_requested_file(storage: MemoryStorage) -> None:
    timeline = active(storage)
    completed = timeline.complete(timeline.to_inflight(requested(Action.SAVEPOINT)), b"files", None)
    assert files(storage) == [f"{T1}.savepoint", f"{T1}.savepoint.inflight"]
    timeline.delete(completed)
    timeline.delete_pending(completed)
    assert files(storage) == []


def test_unknown_files_and_folders_are_ignored_by_load(tmp_path: Path) -> None:
    folder = tmp_path / ".hoodie"
    folder.mkdir()
    for name in ("hoodie.properties", f".{T1}.commit.crc", "notes.txt", f"{T1}.commit.tmp", f"{T1}.unknown", f"{T2}.commit.requested"):
        (folder / name).touch()
    (folder / f"{T1}.commit").mkdir()
    assert active(LocalStorage(str(tmp_path))).load().instants == (requested(time=T2),)


def test_empty_completed_commit_is_on_the_timeline_and_left_to_its_reader(storage: MemoryStorage) -> None:
    storage.create(f".hoodie/{T1}.commit", b"")
    (instant,) = active(storage).load()
    assert instant.is_completed
    assert active(storage).read(instant) == b""


def test_taken_instant_time_is_refused_even_with_the_same_content(storage: MemoryStorage) -> None:
    active(storage).create_requested(requested())
    with pytest.raises(StoredFileExistsError):
        active(storage).create_requested(requested())


def test_steps_out_of_order_are_refused(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = requested().at(State.INFLIGHT)
    with pytest.raises(IllegalTransitionError):
        timeline.create_requested(inflight)
    with pytest.raises(IllegalTransitionError, match="never requested"):
        timeline.to_inflight(requested())
    with pytest.raises(IllegalTransitionError, match="never inflight"):
        timeline.complete(inflight, b"{}", None)
    timeline.create_requested(requested())
    with pytest.raises(IllegalTransitionError):
        timeline.to_inflight(inflight)
    with pytest.raises(IllegalTransitionError):
        timeline.complete(requested(), b"{}", None)
    timeline.to_inflight(requested())
    with pytest.raises(IllegalTransitionError, match="never empty"):
        timeline.complete(inflight, b"", None)
    assert files(storage) == [f"{T1}.commit.requested", f"{T1}.inflight"]
    timeline.complete(inflight, b"{}", None)
    with pytest.raises(IllegalTransitionError, match="already"):
        timeline.to_inflight(requested())


def test_inflight_twice_with_the_same_content_is_a_resume_and_with_other_content_refused(storage: MemoryStorage) -> None:
    timeline = active(storage)
    timeline.create_requested(requested(Action.CLEAN), b"plan")
    timeline.to_inflight(requested(Action.CLEAN), b"plan")
    timeline.to_inflight(requested(Action.CLEAN), b"plan")
    with pytest.raises(IllegalTransitionError):
        timeline.to_inflight(requested(Action.CLEAN), b"other plan")


def test_write_rolled_back_by_another_writer_cannot_complete(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested()))
    active(storage).delete_pending(inflight)
    with pytest.raises(IllegalTransitionError, match="rolled it back"):
        timeline.complete(inflight, b"{}", None)
    assert files(storage) == []


def test_completed_with_other_content_is_refused_and_with_the_same_a_success(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested()))
    timeline.complete(inflight, b"{1}", None)
    assert timeline.complete(inflight, b"{1}", None).is_completed
    with pytest.raises(IllegalTransitionError, match="other content"):
        timeline.complete(inflight, b"{2}", None)
    assert timeline.read(inflight.at(State.COMPLETED)) == b"{1}"


def prepared(fault: Fault) -> tuple[MemoryStorage, ActiveTimeline, Instant]:
    """A timeline whose next mutation, the completion, meets the fault."""
    inner = table_storage()
    inflight = active(inner).to_inflight(active(inner).create_requested(requested()))
    return inner, active(FaultyStorage(inner, 1, fault)), inflight


def test_lost_answer_of_the_completion_is_read_back_and_a_success() -> None:
    inner, timeline, inflight = prepared(Fault.LOST_ACK)
    assert timeline.complete(inflight, b"{}", None).is_completed
    assert active(inner).load().find(T1) == inflight.at(State.COMPLETED)


def test_failed_completion_that_left_nothing_is_a_storage_error_and_can_be_tried_again() -> None:
    inner, timeline, inflight = prepared(Fault.TRANSIENT)
    with pytest.raises(StorageError):
        timeline.complete(inflight, b"{}", None)
    assert active(inner).load().find(T1) == inflight
    assert timeline.complete(inflight, b"{}", None).is_completed


class DeafStorage(FaultyStorage):
    """Loses the answer to the first mutation, and cannot be read afterwards."""

    def read(self, path: str) -> bytes:
        raise StorageError(f"cannot read {path!r}: no answer")


def test_unprovable_completion_is_an_unknown_outcome() -> None:
    inner, _, inflight = prepared(Fault.LOST_ACK)
    with pytest.raises(CommitOutcomeUnknownError):
        active(DeafStorage(inner, 1, Fault.LOST_ACK)).complete(inflight, b"{}", None)
    assert active(inner).read(inflight.at(State.COMPLETED)) == b"{}"


class VanishingStorage(FaultyStorage):
    """Says that a file exists, and then that it does not."""

    def create(self, path: str, data: bytes) -> None:
        raise StoredFileExistsError(f"{path} exists")


def test_file_that_was_said_to_exist_and_is_gone_is_an_unknown_outcome() -> None:
    inner, _, inflight = prepared(Fault.LOST_ACK)
    with pytest.raises(CommitOutcomeUnknownError):
        active(VanishingStorage(inner)).complete(inflight, b"{}", None)


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_crash_at_any_step_leaves_the_state_before_or_after_it(call: int, fault: Fault) -> None:
    inner = table_storage()
    timeline = active(FaultyStorage(inner, call, fault))

    def write() -> None:
        timeline.complete(timeline.to_inflight(timeline.create_requested(requested())), b"{}", None)

    with pytest.raises(SimulatedCrash):
        write()
    reached = call if fault is Fault.CRASH_AFTER else call - 1
    expected = [None, *State][reached]
    found = active(inner).load().find(T1)
    assert (found.state if found else None) == expected


def test_read_of_an_absent_instant_is_a_typed_error(storage: MemoryStorage) -> None:
    with pytest.raises(InstantNotFoundError):
        active(storage).read(requested())


def test_delete_pending_removes_inflight_before_requested_and_never_a_completed_instant(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested()))
    completed = timeline.complete(inflight, b"{}", None)
    with pytest.raises(IllegalTransitionError):
        timeline.delete_pending(inflight)
    assert timeline.delete(completed)
    assert not timeline.delete(completed)
    faulty = FaultyStorage(storage)
    active(faulty).delete_pending(completed)
    assert files(storage) == []
    removed = [mutation for mutation in faulty.mutations if "compaction" not in mutation]
    assert removed == [f"delete .hoodie/{T1}.inflight", f"delete .hoodie/{T1}.commit.requested"]


def test_pending_compaction_is_found_by_its_completed_form(storage: MemoryStorage) -> None:
    timeline = active(storage)
    inflight = timeline.to_inflight(timeline.create_requested(requested(Action.COMPACTION), b"plan"))
    timeline.delete_pending(inflight.at(State.COMPLETED))
    assert files(storage) == []
