"""The archived timeline: which files count, what is in them, and what damage does."""

from __future__ import annotations

import json

import pytest

from lakehouse_engine.errors import CorruptLogError, MetadataError
from lakehouse_engine.format.v6.archived import (
    archive_file_name,
    archive_file_number,
    read_archive,
    read_archived_instants,
    render_archive,
)
from lakehouse_engine.format.v6.archived_record import archived_commit, archived_entry
from lakehouse_engine.format.v6.layout_v1 import LayoutV1
from lakehouse_engine.format.v6.metadata_avro import encode_record
from lakehouse_engine.model.archived import ArchivedEntry
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.archived import ArchivedTimeline

LAYOUT = LayoutV1()
FOLDER = ".hoodie/archived"
COMMIT = json.dumps(
    {
        "partitionToWriteStats": {"p": [{"fileId": "f-0", "path": "p/f-0_0-0-0_1.parquet", "prevCommit": "null", "numInserts": 3}]},
        "compacted": False,
        "extraMetadata": {"schema": "{}"},
        "operationType": "INSERT",
    }
).encode()


def states(time: str, action: Action = Action.COMMIT, content: bytes = COMMIT) -> list[ArchivedEntry]:
    contents = {State.REQUESTED: b"", State.INFLIGHT: b"", State.COMPLETED: content}
    return [archived_entry(LAYOUT, Instant(time, action, state), contents[state], f"{time}00") for state in State]


def archive(*files: tuple[int, list[list[ArchivedEntry]]]) -> tuple[MemoryStorage, ArchivedTimeline]:
    storage = MemoryStorage()
    for number, instants in files:
        storage.create(f"{FOLDER}/{archive_file_name(number)}", render_archive(instants, 10))
    return storage, ArchivedTimeline(storage, LAYOUT)


def test_a_table_without_archive_has_no_archived_instants() -> None:
    _, timeline = archive()
    assert (timeline.instants(), list(timeline.entries()), timeline.next_number()) == ([], [], 1)


def test_file_names_count_up_and_others_are_passed_over() -> None:
    storage, timeline = archive((2, [states("1")]), (10, [states("2")]))
    for name in ("mergeArchivePlan.tmp", ".commits_.archive.x_1-0-1", "commits_.archive.11_1-0-1"):
        storage.create(f"{FOLDER}/{name}", b"whatever")
    assert [archive_file_number(entry.name) for entry in timeline.files()] == [2, 10]
    assert timeline.next_number() == 11
    assert [instant.requested_time for instant in timeline.newest_file().instants] == ["2"]


def test_instants_come_in_order_of_time_at_the_highest_state_and_entries_newest_file_first() -> None:
    _, timeline = archive((1, [states("1"), states("2")]), (2, [states("4", Action.DELTA_COMMIT), states("3")]))
    assert [str(instant) for instant in timeline.instants()] == [
        "1.commit.completed",
        "2.commit.completed",
        "3.commit.completed",
        "4.deltacommit.completed",
    ]
    assert [entry.instant.requested_time for entry in timeline.entries()] == ["4"] * 3 + ["3"] * 3 + ["1"] * 3 + ["2"] * 3


def test_what_is_archived_twice_counts_once() -> None:
    _, timeline = archive((1, [states("1"), states("2")]), (2, [states("2"), states("3")]))
    assert [instant.requested_time for instant in timeline.instants()] == ["1", "2", "3"]
    assert len(list(timeline.entries())) == 9


def test_commit_metadata_comes_back_as_far_as_the_archive_keeps_it() -> None:
    _, timeline = archive((1, [states("1")]))
    requested, inflight, completed = timeline.entries()
    assert archived_commit(requested) is archived_commit(inflight) is None
    metadata = archived_commit(completed)
    assert metadata is not None
    assert metadata.operation_type is WriteOperationType.INSERT
    assert metadata.extra_metadata == {"schema": "{}"}
    (stat,) = metadata.write_stats()
    assert (stat.file_id, stat.path, stat.num_inserts, stat.prev_commit) == ("f-0", "p/f-0_0-0-0_1.parquet", 3, "null")
    assert completed.transition_time == "100"


def test_a_compaction_completes_as_a_commit_and_a_replace_commit_keeps_what_it_replaced() -> None:
    replaced = json.loads(COMMIT) | {"partitionToReplaceFileIds": {"p": ["g-0"]}, "operationType": "INSERT_OVERWRITE"}
    content = json.dumps(replaced).encode()
    entry = archived_entry(LAYOUT, Instant("1", Action.REPLACE_COMMIT, State.COMPLETED), content, "2")
    compaction = [
        archived_entry(LAYOUT, Instant("3", Action.COMPACTION, State.INFLIGHT), b"", "4"),
        archived_entry(LAYOUT, Instant("3", Action.COMMIT, State.COMPLETED), COMMIT, "5"),
    ]
    _, timeline = archive((1, [[entry], compaction]))
    found = list(timeline.entries())
    metadata = archived_commit(found[0])
    assert metadata is not None
    assert metadata.partition_to_replace_file_ids == {"p": ("g-0",)}
    assert [found.record["actionType"] for found in found] == ["replacecommit", "compaction", "commit"]
    assert [str(instant) for instant in timeline.instants()] == ["1.replacecommit.completed", "3.commit.completed"]


def test_a_batch_of_one_has_a_block_for_every_instant() -> None:
    data = render_archive([states("1"), states("2")], 1)
    assert data.count(b"#HUDI#") == 2
    assert read_archived_instants(data) == [entry.instant for entry in read_archive(data)]


@pytest.mark.parametrize("cut", [1, 20, 2000])
def test_a_damaged_file_is_named(cut: int) -> None:
    storage, timeline = archive((1, [states("1")]))
    path = f"{FOLDER}/{archive_file_name(1)}"
    whole = storage.read(path)
    storage.delete(path)
    storage.create(path, whole[:-cut])
    with pytest.raises(CorruptLogError, match="is damaged") as caught:
        timeline.instants()
    assert caught.value.context["path"] == path


def test_a_record_that_is_no_instant_is_refused() -> None:
    (entry, *_) = states("1")
    broken = ArchivedEntry(entry.instant, None, entry.record | {"actionType": "vacuum"})
    with pytest.raises(MetadataError, match="'vacuum'"):
        read_archive(render_archive([[broken]], 10))


class TestMerge:
    """Hudi merges small archive files under a plan that is there until the merged ones are gone."""

    def plan(self, storage: MemoryStorage, target: int) -> None:
        plan = {"candidate": [archive_file_name(1)], "mergedArchiveFileName": f"/somewhere/archived/{archive_file_name(target)}"}
        storage.create(f"{FOLDER}/mergeArchivePlan", encode_record("HoodieMergeArchiveFilePlan", plan))

    def test_the_file_that_is_being_written_is_passed_over_while_it_is_not_whole(self) -> None:
        storage, timeline = archive((1, [states("1")]))
        self.plan(storage, 2)
        assert timeline.next_number() == 3
        storage.create(f"{FOLDER}/{archive_file_name(2)}", render_archive([states("1")], 10)[:-9])
        assert [instant.requested_time for instant in timeline.instants()] == ["1"]

    def test_a_merged_file_counts_once_with_what_it_merged(self) -> None:
        storage, timeline = archive((1, [states("1")]), (2, [states("1")]))
        self.plan(storage, 2)
        assert len(list(timeline.entries())) == 3

    def test_damage_elsewhere_is_damage_all_the_same(self) -> None:
        storage, timeline = archive((2, [states("1")]))
        self.plan(storage, 2)
        storage.create(f"{FOLDER}/{archive_file_name(1)}", render_archive([states("1")], 10)[:-9])
        with pytest.raises(CorruptLogError):
            timeline.instants()
