from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import CorruptInstantError, FileNameError, UnsupportedTableVersionError
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.format.v6.table_format import FormatV6
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.table_config import TableConfig

_PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
_TIME = "20240101000000000"
_WITHOUT_FILE = {(Action.SAVEPOINT, State.REQUESTED)}


@given(st.from_regex(r"[0-9]{14}([0-9]{3})?", fullmatch=True), st.sampled_from(list(Action)), st.sampled_from(list(State)))
def test_instant_file_names_parse_back(time: str, action: Action, state: State) -> None:
    if (action, state) in _WITHOUT_FILE:
        return
    table_format = FormatV6()
    instant = Instant(time, action, state)
    # A completed compaction is a commit on the timeline, and a clustering a replacecommit from the start.
    read = Instant(time, Action.REPLACE_COMMIT, state) if action is Action.CLUSTERING else instant.at(state)
    assert table_format.parse_file_name(table_format.file_name(instant)) == read


@given(st.one_of(st.text(max_size=30), st.builds("{}.{}".format, st.just(_TIME), st.text(max_size=20))))
def test_any_name_that_parses_prints_back(name: str) -> None:
    table_format = FormatV6()
    instant = table_format.parse_file_name(name)
    assert instant is None or table_format.file_name(instant) == name


@pytest.mark.parametrize(
    ("name", "action", "state"),
    [
        ("commit.requested", Action.COMMIT, State.REQUESTED),
        ("inflight", Action.COMMIT, State.INFLIGHT),
        ("commit", Action.COMMIT, State.COMPLETED),
        ("deltacommit.inflight", Action.DELTA_COMMIT, State.INFLIGHT),
        ("compaction.requested", Action.COMPACTION, State.REQUESTED),
        ("logcompaction.inflight", Action.LOG_COMPACTION, State.INFLIGHT),
        ("savepoint.inflight", Action.SAVEPOINT, State.INFLIGHT),
        ("savepoint", Action.SAVEPOINT, State.COMPLETED),
        ("indexing.requested", Action.INDEXING, State.REQUESTED),
        ("restore", Action.RESTORE, State.COMPLETED),
    ],
)
def test_names_are_those_of_hudi(name: str, action: Action, state: State) -> None:
    assert FormatV6().parse_file_name(f"{_TIME}.{name}") == Instant(_TIME, action, state)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "archived",
        f"{_TIME}.commit.inflight",
        f"{_TIME}.compaction",
        f"{_TIME}.logcompaction",
        f"{_TIME}.clustering.requested",
        f"{_TIME}.savepoint.requested",
        f"{_TIME}.commit.crc",
        f".{_TIME}.commit.crc",
        f"{_TIME}.schemacommit",
        f"{_TIME}_{_TIME}.commit",
        f"{_TIME}.commit\n",
        f"{_TIME}.COMMIT",
    ],
)
def test_other_files_are_no_instants(name: str) -> None:
    assert FormatV6().parse_file_name(name) is None


def test_completed_compactions_are_named_as_commits() -> None:
    table_format = FormatV6()
    assert table_format.file_name(Instant(_TIME, Action.COMPACTION, State.COMPLETED)) == f"{_TIME}.commit"
    assert table_format.file_name(Instant(_TIME, Action.LOG_COMPACTION, State.COMPLETED)) == f"{_TIME}.deltacommit"


def test_a_savepoint_is_never_requested() -> None:
    with pytest.raises(FileNameError, match="savepoint"):
        FormatV6().file_name(Instant(_TIME, Action.SAVEPOINT, State.REQUESTED))


def test_version_six_has_layout_one() -> None:
    table_format = format_of(TableConfig({**_PROPERTIES, "hoodie.timeline.layout.version": "1"}))
    assert table_format.timeline_folder == ".hoodie"
    assert pickle.loads(pickle.dumps(table_format)) == table_format
    metadata = HoodieCommitMetadata()
    assert table_format.decode_commit(table_format.encode_commit(metadata)) == metadata


@pytest.mark.parametrize("version", ["8", "9"])
def test_versions_eight_and_nine_have_layout_two(version: str) -> None:
    table_format = format_of(TableConfig({**_PROPERTIES, "hoodie.table.version": version, "hoodie.timeline.layout.version": "2"}))
    assert table_format.timeline_folder == ".hoodie/timeline"
    assert table_format.orders_by_completion
    assert pickle.loads(pickle.dumps(table_format)) == table_format


@pytest.mark.parametrize(
    "changed",
    [
        {"hoodie.table.version": "5"},
        {"hoodie.table.version": "7"},
        {"hoodie.table.version": "8", "hoodie.timeline.layout.version": "1"},
        {"hoodie.timeline.layout.version": "0"},
        {"hoodie.timeline.layout.version": "2"},
    ],
)
def test_other_versions_are_refused(changed: dict[str, str]) -> None:
    with pytest.raises(UnsupportedTableVersionError):
        format_of(TableConfig({**_PROPERTIES, **changed}))


def test_an_empty_commit_is_corrupt() -> None:
    with pytest.raises(CorruptInstantError, match="empty"):
        FormatV6().decode_commit(b"")
