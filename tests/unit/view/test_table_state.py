from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import (
    CorruptInstantError,
    InstantNotFoundError,
    PropertiesError,
    TableNotFoundError,
    UnsupportedTableVersionError,
)
from lakehouse_engine.format.v6.layout_v1 import LayoutV1
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import FaultyStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import PROPERTIES, ConfigStore
from lakehouse_engine.view.table_state import TableState

LAYOUT = LayoutV1()


def at(number: int) -> str:
    return f"{20260101000000000 + number}"


def table(storage: Storage, **properties: str) -> Storage:
    changes = {f"hoodie.{key.replace('_', '.')}": value for key, value in properties.items()}
    names = {"hoodie.table.name": "trips", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
    ConfigStore(storage).create(TableConfig({**names, "hoodie.timeline.layout.version": "1", **changes}))
    return storage


def commit(storage: Storage, number: int, action: Action = Action.COMMIT, replaced: dict[str, tuple[str, ...]] | None = None) -> Instant:
    metadata = HoodieCommitMetadata(operation_type=WriteOperationType.INSERT, partition_to_replace_file_ids=replaced)
    for state in State:
        instant = Instant(at(number), action, state)
        content = LAYOUT.encode_commit(metadata) if state is State.COMPLETED else b""
        storage.create(f".hoodie/{LAYOUT.file_name(instant)}", content)
    return Instant(at(number), action, State.COMPLETED)


class ReadCounter(FaultyStorage):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.reads: list[str] = []

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return super().read(path)


def test_absent_table_is_a_typed_error() -> None:
    with pytest.raises(TableNotFoundError):
        TableState.load(MemoryStorage())


@pytest.mark.parametrize(
    ("version", "layout", "says"),
    [
        ("0", "1", r"version 0, which Hudi before 0\.6\.0 writes.*upgrade_table\(.*'SIX'"),
        ("1", "1", r"version 1, which Hudi 0\.6\.0 to 0\.8\.0 writes.*Hudi 0\.14 or 0\.15: CALL upgrade_table\("),
        ("4", "1", r"version 4, which Hudi 0\.11\.0 writes.*lakehouse upgrade .* --to 6"),
        ("5", "1", r"version 5, which Hudi 0\.12\.0 to 0\.13\.1 writes.*lakehouse upgrade .* --to 6"),
        ("7", "1", r"version 7, which Hudi 0\.16\.0 writes.*lakehouse upgrade .* --to 6"),
        ("8", "1", r"hoodie\.timeline\.layout\.version='1'.*version 8 have the timeline layout 2"),
        ("9", "1", r"hoodie\.timeline\.layout\.version='1'.*version 9 have the timeline layout 2"),
        ("6", "2", r"hoodie\.timeline\.layout\.version='2'.*downgrade_table"),
        ("77", "1", r"hoodie\.table\.version='77' is no table version that is known"),
        ("x", "1", r"hoodie\.table\.version='x' is no table version that is known"),
        ("٦", "1", r"is no table version that is known"),
    ],
)
def test_unsupported_version_is_refused_with_the_release_that_writes_it_and_the_way_out(version: str, layout: str, says: str) -> None:
    storage = table(MemoryStorage(), table_version=version, timeline_layout_version=layout)
    with pytest.raises(UnsupportedTableVersionError, match=says) as caught:
        TableState.load(storage)
    assert caught.value.context["table"] == "trips"
    assert caught.value.context["path"] == storage.root


def test_table_without_a_version_is_told_as_one_of_an_old_hudi_or_a_torn_file() -> None:
    storage = table(MemoryStorage())
    gone = ("checksum", "table.version", "seal")
    lines = [line for line in storage.read(PROPERTIES).decode().splitlines() if not any(word in line for word in gone)]
    storage.overwrite(PROPERTIES, "\n".join(lines).encode())
    with pytest.raises(PropertiesError, match=r"no hoodie\.table\.version.*before 0\.6\.0"):
        TableState.load(storage)


@pytest.mark.parametrize("folder", ["../../elsewhere", "/tmp/x", "a//b", ".", "metadata", ".temp/old", ".bucket_index"])
def test_archive_folder_that_leaves_the_timeline_or_goes_with_another_is_refused(folder: str) -> None:
    storage = table(MemoryStorage(), archivelog_folder=folder)
    with pytest.raises(PropertiesError, match=r"hoodie\.archivelog\.folder"):
        _ = TableState.load(storage).config.archive_folder


def test_table_whose_partition_columns_are_dropped_opens_and_says_so() -> None:
    storage = table(MemoryStorage(), datasource_write_drop_partition_columns="true")
    assert TableState.load(storage).config.drops_partition_columns


def test_loading_opens_no_commit_and_refreshing_sees_later_ones() -> None:
    storage = ReadCounter(table(MemoryStorage()))
    commit(storage, 1)
    state = TableState.load(storage)
    assert {path.removesuffix(".backup") for path in storage.reads} == {".hoodie/hoodie.properties"}
    commit(storage, 2)
    assert len(state.timeline) == 1
    assert len(state.refresh().timeline) == 2


def test_commit_metadata_is_decoded_once_and_kept_over_a_refresh() -> None:
    storage = ReadCounter(table(MemoryStorage()))
    instant = commit(storage, 1)
    state = TableState.load(storage)
    first = state.commit_metadata(instant)
    assert state.refresh().commit_metadata(instant) is first
    assert storage.reads.count(f".hoodie/{at(1)}.commit") == 1


def test_commit_that_left_the_timeline_is_forgotten_by_a_refresh() -> None:
    storage = table(MemoryStorage())
    instant = commit(storage, 1)
    state = TableState.load(storage)
    state.commit_metadata(instant)
    storage.delete(f".hoodie/{at(1)}.commit")
    with pytest.raises(InstantNotFoundError):
        state.refresh().commit_metadata(instant)


@pytest.mark.parametrize("content", [b"", b'{"partitionToWriteStats" : {'])
def test_empty_or_torn_commit_is_an_error_when_read_and_not_before(content: bytes) -> None:
    storage = table(MemoryStorage())
    storage.create(f".hoodie/{at(1)}.commit", content)
    state = TableState.load(storage)
    (instant,) = state.timeline
    with pytest.raises(CorruptInstantError) as caught:
        state.commit_metadata(instant)
    assert caught.value.context["bytes"] == str(len(content))
    assert at(1) in caught.value.context["instant"]


def test_instant_without_commit_metadata_is_refused() -> None:
    state = TableState.load(table(MemoryStorage()))
    for instant in (Instant(at(1), Action.COMMIT, State.INFLIGHT), Instant(at(1), Action.CLEAN, State.COMPLETED)):
        with pytest.raises(InstantNotFoundError):
            state.commit_metadata(instant)


def test_replaced_groups_come_from_completed_replace_commits_only() -> None:
    storage = table(MemoryStorage())
    commit(storage, 1)
    commit(storage, 2, Action.REPLACE_COMMIT, {"p": ("a-0",)})
    commit(storage, 3, Action.REPLACE_COMMIT, {"p": ("b-0",)})
    storage.delete(f".hoodie/{at(3)}.replacecommit")
    state = TableState.load(storage)
    assert state.view.replaced_as_of(at(9)) == {FileGroupId("p", "a-0")}
    assert state.view.replaced_as_of(at(1)) == set()


def test_properties_are_recovered_from_the_backup() -> None:
    storage = table(MemoryStorage())
    storage.create(".hoodie/hoodie.properties.backup", storage.read(".hoodie/hoodie.properties"))
    storage.delete(".hoodie/hoodie.properties")
    assert TableState.load(storage).config.name == "trips"


def test_partitions_of_commits_are_those_of_a_state_that_is_loaded_anew(tmp_path: Path) -> None:
    from lakehouse_engine import Lakehouse

    lake = Lakehouse(str(tmp_path))
    lake.create_schema("s")
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    made = lake.create_table("s.t", schema=schema, record_key=["id"], partition_by=["day"])
    state = made.state
    steps = [
        lambda: made.insert(pa.table({"id": [1, 2], "day": ["a", "b"]}, schema=schema)),
        lambda: made.delete_partitions(["day=a"]),
        lambda: made.insert(pa.table({"id": [3], "day": ["c"]}, schema=schema)),
        lambda: made.rollback(),
    ]
    for step, expected in zip(steps, (["day=a", "day=b"], ["day=b"], ["day=b", "day=c"], ["day=b"]), strict=True):
        step()
        state = state.advance()
        assert state.live_partitions() == expected == TableState.load(state.storage).live_partitions()
        assert state.advance().live_partitions() == expected
