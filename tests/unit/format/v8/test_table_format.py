from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import FileNameError
from lakehouse_engine.format.table_format import TableFormat
from lakehouse_engine.format.v8.table_format import FormatV8
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from tests.unit.format.v8.tables import ACTIVE, TABLES, files_of, listed_sizes, needs_fixtures, state_files

_TIME, _LATER = "20240101000000000", "20240101000001000"
_LAYOUT: TableFormat = FormatV8()


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_every_file_of_a_timeline_is_an_instant_of_that_name(name: str) -> None:
    names = [file_name for file_name, _ in state_files(name)]
    for file_name in names:
        instant = _LAYOUT.parse_file_name(file_name)
        assert instant is not None, file_name
        assert _LAYOUT.file_name(instant) == file_name
    listed = [path for path in listed_sizes(name) if f"{path.rpartition('/')[0]}/" in ACTIVE]
    assert sorted(names) == sorted(path.rpartition("/")[2] for path in listed)


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_other_files_of_a_timeline_are_no_instants(name: str) -> None:
    others = [path.rpartition("/")[2] for path in files_of(name) if f"{path.rpartition('/')[0]}/" not in ACTIVE]
    assert [other for other in others if _LAYOUT.parse_file_name(other) is not None] == []


@needs_fixtures
@pytest.mark.parametrize("name", TABLES)
def test_instants_complete_after_they_are_requested(name: str) -> None:
    completed = [instant for file_name, _ in state_files(name) if (instant := _LAYOUT.parse_file_name(file_name)) and instant.is_completed]
    assert completed
    assert all(one.completed_at is not None and one.completed_at > one.requested_time for one in completed)


@given(st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True), st.sampled_from(list(Action)), st.sampled_from(list(State)))
def test_instant_file_names_parse_back(time: str, action: Action, state: State) -> None:
    if (action, state) == (Action.SAVEPOINT, State.REQUESTED):
        return
    instant = Instant(time, action, state, _LATER if state is State.COMPLETED else None)
    parsed = _LAYOUT.parse_file_name(_LAYOUT.file_name(instant))
    assert parsed == instant.at(state)
    assert parsed.completed_at == instant.completed_at


@given(st.one_of(st.text(max_size=30), st.builds("{}_{}.{}".format, st.just(_TIME), st.just(_LATER), st.text(max_size=20))))
def test_any_name_that_parses_prints_back(name: str) -> None:
    instant = _LAYOUT.parse_file_name(name)
    assert instant is None or _LAYOUT.file_name(instant) == name


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        (f"{_TIME}.commit.requested", Action.COMMIT, State.REQUESTED),
        (f"{_TIME}.inflight", Action.COMMIT, State.INFLIGHT),
        (f"{_TIME}_{_LATER}.commit", Action.COMMIT, State.COMPLETED),
        (f"{_TIME}.clustering.requested", Action.CLUSTERING, State.REQUESTED),
        (f"{_TIME}.clustering.inflight", Action.CLUSTERING, State.INFLIGHT),
        (f"{_TIME}_{_LATER}.replacecommit", Action.REPLACE_COMMIT, State.COMPLETED),
        (f"{_TIME}.savepoint.inflight", Action.SAVEPOINT, State.INFLIGHT),
        (f"{_TIME}_{_LATER}.indexing", Action.INDEXING, State.COMPLETED),
    ],
)
def test_names_are_those_of_hudi(name: str, action: Action, state: State) -> None:
    assert _LAYOUT.parse_file_name(name) == Instant(_TIME, action, state)


@pytest.mark.parametrize(
    "name",
    [
        "history",
        f"{_TIME}_{_LATER}.commit.requested",
        f"{_TIME}_{_LATER}.inflight",
        f"{_TIME}_{_LATER}.clustering",
        f"{_TIME}_{_LATER}.compaction",
        f"{_TIME}.savepoint.requested",
        f"{_TIME}_{_LATER}_{_LATER}.commit",
        f"{_TIME}_.commit",
        f"{_TIME}_{_LATER}.commit.crc",
        f"{_TIME}_{_LATER}.schemacommit",
    ],
)
def test_other_names_are_no_instants(name: str) -> None:
    assert _LAYOUT.parse_file_name(name) is None


@pytest.mark.parametrize(
    ("action", "word"),
    [(Action.COMPACTION, "commit"), (Action.LOG_COMPACTION, "deltacommit"), (Action.CLUSTERING, "replacecommit")],
)
def test_services_complete_under_the_action_of_a_write(action: Action, word: str) -> None:
    assert _LAYOUT.file_name(Instant(_TIME, action, State.COMPLETED, _LATER)) == f"{_TIME}_{_LATER}.{word}"


def test_a_completed_instant_needs_its_completion_time() -> None:
    with pytest.raises(FileNameError, match="completion time"):
        _LAYOUT.file_name(Instant(_TIME, Action.COMMIT, State.COMPLETED))


def test_a_completed_file_of_an_unfinished_upgrade_is_not_passed_over() -> None:
    with pytest.raises(FileNameError, match="upgrade_table"):
        _LAYOUT.parse_file_name(f"{_TIME}.commit")


def test_a_savepoint_is_never_requested() -> None:
    with pytest.raises(FileNameError, match="savepoint"):
        _LAYOUT.file_name(Instant(_TIME, Action.SAVEPOINT, State.REQUESTED))


def test_the_layout_is_pickled_with_its_folder() -> None:
    table_format = FormatV8(".hoodie/instants")
    assert pickle.loads(pickle.dumps(table_format)).timeline_folder == ".hoodie/instants"
    metadata = HoodieCommitMetadata()
    assert table_format.decode_commit(table_format.encode_commit(metadata)) == metadata
