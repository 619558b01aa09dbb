from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.files import FileGroup
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.order import Order
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.slicing import build_file_groups, is_replaced, slice_as_of, whole_slices

C, D, COMPACTION, R = Action.COMMIT, Action.DELTA_COMMIT, Action.COMPACTION, Action.REPLACE_COMMIT
DONE, INFLIGHT, REQUESTED = State.COMPLETED, State.INFLIGHT, State.REQUESTED


def at(number: int) -> str:
    return f"{20260101000000000 + number}"


def timeline(*instants: tuple[int, Action, State]) -> Timeline:
    return Timeline.of_states(Instant(at(number), action, state) for number, action, state in instants)


def base(number: int, file_id: str = "f-0", token: str = "0-1-2", size: int = 10) -> StoredFile:
    return StoredFile(f"p/{file_id}_{token}_{at(number)}.parquet", size, 0)


def log(number: int, version: int, file_id: str = "f-0", suffix: str = "") -> StoredFile:
    return StoredFile(f"p/.{file_id}_{at(number)}.log.{version}_0-1-2{suffix}", 5, 0)


def groups(files: list[StoredFile], instants: Timeline) -> list[FileGroup]:
    return build_file_groups("p", files, instants)


def one(files: list[StoredFile], instants: Timeline) -> FileGroup:
    (group,) = groups(files, instants)
    return group


def test_slices_of_a_group_are_newest_first_with_sizes_and_sorted_logs() -> None:
    group = one([base(1), log(1, 10), log(1, 2), base(3), log(3, 1)], timeline((1, C, DONE), (2, D, DONE), (3, C, DONE)))
    assert [piece.base_instant for piece in group.slices] == [at(3), at(1)]
    assert [entry.version for entry in group.slices[1].log_files] == [2, 10]
    assert group.slices[1].size == 20
    assert group.slices[0].base_file is not None
    assert group.slices[0].base_file.path == f"p/f-0_0-1-2_{at(3)}.parquet"


def test_groups_are_sorted_by_file_id() -> None:
    assert [group.group for group in groups([base(1, "b-0"), base(1, "a-0")], timeline((1, C, DONE)))] == [
        FileGroupId("p", "a-0"),
        FileGroupId("p", "b-0"),
    ]


@pytest.mark.parametrize("state", [REQUESTED, INFLIGHT])
@pytest.mark.parametrize("action", [C, D, R, COMPACTION])
def test_base_file_of_a_pending_instant_is_invisible(action: Action, state: State) -> None:
    group = one([base(1), base(5)], timeline((1, C, DONE), (5, action, state)))
    assert [piece.base_instant for piece in group.slices] == [at(1)]


def test_files_of_an_instant_that_is_not_on_the_timeline_are_invisible_unless_older_than_its_start() -> None:
    instants = timeline((5, C, DONE), (9, C, DONE))
    assert groups([base(7)], instants) == []
    assert [piece.base_instant for piece in one([base(3)], instants).slices] == [at(3)]
    assert groups([base(11)], instants) == []
    assert groups([base(3)], timeline()) == []


def test_foreign_names_and_cdc_files_are_passed_over() -> None:
    names = ["_SUCCESS", "part-0.parquet", "x.tmp", ".hoodie_partition_metadata", "a_b_c.parquet", f"f-0_0-1-2_{at(1)}.parquet.tmp"]
    files = [StoredFile(f"p/{name}", 1, 0) for name in names]
    assert groups([*files, log(1, 1, suffix=".cdc")], timeline((1, C, DONE))) == []
    assert one([*files, base(1), log(1, 1, suffix=".cdc")], timeline((1, C, DONE))).slices[0].log_files == ()


def test_last_attempt_wins_where_a_retried_task_left_two_files_of_one_slice() -> None:
    files = [base(1, token="0-9-99"), base(1, token="0-10-100"), base(1, token="0-10-9")]
    found = one(files, timeline((1, C, DONE))).slices[0].base_file
    assert found is not None
    assert found.write_token == "0-10-100"


def test_group_of_logs_alone_is_a_slice_once_its_first_delta_commit_is_complete() -> None:
    slice_ = one([log(2, 1)], timeline((1, D, DONE), (2, D, DONE))).slices[0]
    assert slice_.base_file is None
    assert len(slice_.log_files) == 1
    assert groups([log(2, 1)], timeline((1, D, DONE), (2, D, INFLIGHT))) == []


def latest(files: list[StoredFile], instants: Timeline, as_of: int | None = None) -> tuple[str, str | None, list[str]] | None:
    found = slice_as_of(one(files, instants), instants.pending_compactions, instants.order, None if as_of is None else at(as_of))
    if found is None:
        return None
    return found.base_instant, found.base_file.instant_time if found.base_file else None, [entry.name for entry in found.log_files]


def test_slice_as_of_is_the_newest_not_after_the_instant() -> None:
    files, instants = [base(1), base(3), base(5)], timeline((1, C, DONE), (3, C, DONE), (5, C, DONE))
    assert latest(files, instants) == (at(5), at(5), [])
    assert latest(files, instants, 4) == (at(3), at(3), [])
    assert latest(files, instants, 3) == (at(3), at(3), [])
    assert latest(files, instants, 0) is None


@pytest.mark.parametrize("state", [REQUESTED, INFLIGHT])
def test_logs_of_a_pending_compaction_are_merged_into_the_slice_before(state: State) -> None:
    instants = timeline((1, D, DONE), (2, D, DONE), (3, COMPACTION, state), (4, D, DONE))
    files = [base(1), log(1, 1), log(3, 1), base(3)]
    assert latest(files, instants) == (at(1), at(1), [log(1, 1).name, log(3, 1).name])
    assert latest(files, instants, 2) == (at(1), at(1), [log(1, 1).name])


def test_completed_compaction_makes_a_slice_of_its_own() -> None:
    instants = timeline((1, D, DONE), (2, D, DONE), (3, COMPACTION, INFLIGHT), (3, C, DONE), (4, D, DONE))
    files = [base(1), log(1, 1), log(3, 1), base(3)]
    assert latest(files, instants) == (at(3), at(3), [log(3, 1).name])
    assert latest(files, instants, 2) == (at(1), at(1), [log(1, 1).name])


def test_pending_compaction_without_logs_on_it_changes_nothing() -> None:
    instants = timeline((1, D, DONE), (3, COMPACTION, REQUESTED))
    assert latest([base(1), log(1, 1)], instants) == (at(1), at(1), [log(1, 1).name])


def test_logs_on_a_pending_compaction_without_an_older_slice_stand_alone() -> None:
    instants = timeline((1, D, DONE), (3, COMPACTION, REQUESTED), (4, D, DONE))
    assert latest([log(3, 1)], instants) == (at(3), None, [log(3, 1).name])


def test_pending_log_compaction_makes_no_slice() -> None:
    instants = timeline((1, D, DONE), (3, Action.LOG_COMPACTION, REQUESTED))
    assert instants.pending_compactions == frozenset()
    assert latest([base(1), log(1, 1), log(3, 1)], instants) == (at(1), at(1), [log(1, 1).name])


def test_replaced_group_is_gone_from_the_replacing_instant_on() -> None:
    metadata = HoodieCommitMetadata(partition_to_replace_file_ids={"p": ("f-0", "g-0"), "q": ()})
    assert metadata.replaced_groups() == [FileGroupId("p", "f-0"), FileGroupId("p", "g-0")]
    replaced = {FileGroupId("p", "f-0"): at(5)}
    assert is_replaced(FileGroupId("p", "f-0"), replaced, Order.by_request(), None)
    assert is_replaced(FileGroupId("p", "f-0"), replaced, Order.by_request(), at(5))
    assert not is_replaced(FileGroupId("p", "f-0"), replaced, Order.by_request(), at(4))
    assert not is_replaced(FileGroupId("q", "f-0"), replaced, Order.by_request(), None)
    assert HoodieCommitMetadata().replaced_groups() == []


instant_numbers = st.integers(1, 9)
states = st.sampled_from([DONE, DONE, INFLIGHT, REQUESTED])
actions = st.sampled_from([C, D, R, COMPACTION, Action.CLEAN])


@given(
    # No two actions share an instant time, but for a savepoint and the commit that it pins.
    st.lists(st.tuples(instant_numbers, actions, states), max_size=8, unique_by=lambda instant: instant[0]),
    st.lists(st.tuples(instant_numbers, st.sampled_from(["f-0", "g-0"]), st.integers(0, 3)), max_size=12, unique=True),
    st.one_of(st.none(), instant_numbers),
)
def test_slice_as_of_never_shows_uncommitted_base_files_nor_what_came_after(
    instants: list[tuple[int, Action, State]], files: list[tuple[int, str, int]], as_of: int | None
) -> None:
    known = timeline(*instants)
    stored = [base(number, file_id) if version == 0 else log(number, version, file_id) for number, file_id, version in files]
    pending = known.pending_compactions
    limit = at(as_of) if as_of is not None else at(10)
    for group in groups(stored, known):
        found = slice_as_of(group, pending, Order.by_request(), None if as_of is None else limit)
        visible = [
            file.name.split("_")[2].removesuffix(".parquet") if not file.name.startswith(".") else ""
            for file in stored
            if file.name.removeprefix(".").startswith(group.group.file_id)
        ]
        committed = [time for time in visible if time and known.is_committed(time) and time <= limit]
        if found is None:
            assert not committed
            continue
        assert found.base_instant <= limit
        if found.base_file is not None:
            assert known.is_committed(found.base_file.instant_time)
            assert found.base_file.instant_time == max(committed)
        assert all(entry.instant_time <= limit for entry in found.log_files)


def test_files_that_are_all_committed_make_one_slice_of_each_group() -> None:
    names = ["g_0-0-0_1.parquet", "g_0-0-0_3.parquet", ".g_1.log.1_0-0-0", ".g_3.log.2_0-0-0", ".g_5.log.1_0-0-0", ".g_3.log.1_0-0-0"]
    names += [".h_2.log.1_0-0-0", ".h_4.log.1_0-0-0", ".h_4.log.1_0-0-0.cdc", "notes.txt"]
    group, logs_only = whole_slices("p", [StoredFile(f"p/{name}", 7, 0) for name in names])
    assert (group.base_instant, group.base_file and group.base_file.name) == ("3", "g_0-0-0_3.parquet")
    assert [log.name for log in group.log_files] == [".g_3.log.1_0-0-0", ".g_3.log.2_0-0-0", ".g_5.log.1_0-0-0"]
    assert (logs_only.base_instant, logs_only.base_file) == ("2", None)
    assert [log.instant_time for log in logs_only.log_files] == ["2", "4"]


def by_completion(*instants: tuple[int, Action, int]) -> Timeline:
    """Completed instants: requested, action, completed."""
    return Timeline.of_states((Instant(at(asked), action, DONE, at(done)) for asked, action, done in instants), by_completion=True)


def test_a_log_of_a_later_version_is_on_the_newest_base_file_requested_before_its_writer_completed() -> None:
    # The delta commit 2 was at work when the compaction 3 was planned: its log is on top of what that made.
    instants = by_completion((1, C, 2), (2, D, 5), (3, C, 8), (6, D, 7))
    group = one([base(1), base(3), log(2, 1), log(6, 1)], instants)
    assert [(piece.base_instant, [entry.instant_time for entry in piece.log_files]) for piece in group.slices] == [
        (at(3), [at(2), at(6)]),
        (at(1), []),
    ]


def test_logs_of_a_later_version_are_in_order_of_completion() -> None:
    instants = by_completion((1, C, 2), (3, D, 9), (4, D, 5))
    (piece,) = one([base(1), log(3, 1), log(4, 1)], instants).slices
    assert [entry.instant_time for entry in piece.log_files] == [at(4), at(3)]


def test_the_first_log_of_a_later_version_begins_a_slice_that_later_ones_are_of() -> None:
    instants = by_completion((1, D, 2), (3, D, 4))
    (piece,) = one([log(1, 1), log(3, 1)], instants).slices
    assert (piece.base_instant, piece.base_file) == (at(1), None)
    assert len(piece.log_files) == 2


def test_as_of_a_moment_a_later_version_shows_what_was_completed_by_then() -> None:
    instants = by_completion((1, C, 5), (2, C, 3))
    group = one([base(1), base(2)], instants)
    found = [slice_as_of(group, instants.pending_compactions, instants.order, at(moment)) for moment in (2, 4, 5)]
    assert [None if piece is None else piece.base_instant for piece in found] == [None, at(2), at(2)]
