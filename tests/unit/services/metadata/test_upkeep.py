"""Services of a metadata table after commits: what they keep, when they run, and what is left after a crash at any call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import CompactionError, LakehouseError
from lakehouse_engine.format.file_names import is_base_file_name, parse_base_file
from lakehouse_engine.format.v6.plans_codec import encode_plan
from lakehouse_engine.metadata_table.compaction import blocked_by
from lakehouse_engine.metadata_table.written import unmerged
from lakehouse_engine.model.instant import Action, Instant, State
from lakehouse_engine.model.plans import HoodieCompactionPlan
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions, MetadataTableOptions, ServiceOptions, WriteOptions
from lakehouse_engine.services.archive.plan import plan_archive
from lakehouse_engine.services.inline import after_commit
from lakehouse_engine.services.metadata import files
from lakehouse_engine.services.metadata.compaction import compact
from lakehouse_engine.services.metadata.upkeep import archive_options, clean_options, run_due
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.config_store import ConfigStore
from tests.support.followed_tables import FollowedTable, open_data, open_metadata

OFTEN = ServiceOptions.read(
    {
        "hoodie.metadata.compact.max.delta.commits": 3,
        "hoodie.clean.commits.retained": 2,
        "hoodie.keep.min.commits": 4,
        "hoodie.keep.max.commits": 5,
    }
)

AT_ONCE = replace(OFTEN, metadata_table=MetadataTableOptions(delta_commits=1))


def served(storage: Storage, options: ServiceOptions = OFTEN) -> None:
    run_due(open_data(storage), options, LocalRunner(), lock_timeout_ms=1000)


def after(storage: Storage, options: ServiceOptions = OFTEN) -> None:
    assert after_commit(storage, options, WriteOptions(), LocalRunner()) == ()


def copied(storage: Storage) -> MemoryStorage:
    found = MemoryStorage()
    for entry in storage.walk():
        found.create(entry.path, storage.read(entry.path))
    return found


def done(storage: Storage, action: Action) -> list[str]:
    timeline = open_metadata(storage).timeline.completed()
    return [one.requested_time for one in timeline if one.action is action]


def of(followed: FollowedTable, storage: Storage) -> FollowedTable:
    """The same table in another storage."""
    files = {partition: set(names) for partition, names in followed.files.items()}
    return FollowedTable(storage, files, dict(followed.keys), followed.commits)


def test_a_metadata_table_is_compacted_after_so_many_delta_commits(followed: FollowedTable) -> None:
    built = len(open_metadata(followed.storage).timeline)
    followed.commit()
    served(followed.storage, ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": built + 2}))
    assert done(followed.storage, Action.COMMIT) == []
    last = followed.commit()
    served(followed.storage, ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": built + 2}))
    (compaction,) = done(followed.storage, Action.COMMIT)
    assert compaction == f"{last}001" or (len(compaction) == 17 and compaction > last)
    assert all(piece.base_file is not None and not piece.log_files for piece in open_metadata(followed.storage).view.latest_slices())
    followed.check()
    served(followed.storage, ServiceOptions.read({"hoodie.metadata.compact.max.delta.commits": 1}))
    assert done(followed.storage, Action.COMMIT) == [compaction]


def test_the_commit_names_the_files_with_their_sizes_and_keeps_the_schema(followed: FollowedTable) -> None:
    followed.commit()
    served(followed.storage)
    metadata = open_metadata(followed.storage)
    instant = metadata.timeline.completed().writes().instants[-1]
    found = metadata.commit_metadata(instant)
    assert found.operation_type == "COMPACT"
    assert found.schema_json == followed.schema
    sizes = {stat.path: stat.file_size_in_bytes for stat in found.write_stats()}
    bases = {piece.base_file.path: piece.base_file.size for piece in metadata.view.latest_slices() if piece.base_file is not None}
    assert sizes == bases
    assert sum(stat.num_writes for stat in found.write_stats()) == len(followed.keys) + len(followed.files) + 1


def test_files_and_instants_do_not_grow_with_the_commits(followed: FollowedTable) -> None:
    most: list[tuple[int, int, int]] = []
    for number in range(60):
        followed.commit()
        after(followed.storage)
        if number % 20 == 19:
            metadata = open_metadata(followed.storage)
            data_files = [entry for entry in metadata.storage.walk() if not entry.path.startswith(".hoodie/")]
            most.append((len(metadata.timeline), len(data_files), len(open_data(followed.storage).timeline)))
            followed.check()
    assert all(now <= before + 8 for before, now in zip(most[0], most[-1], strict=True)), most
    assert done(followed.storage, Action.CLEAN)
    assert open_metadata(followed.storage).has_archive


def test_what_a_compaction_replaces_stays_for_readers_that_began_before_it(followed: FollowedTable) -> None:
    one_version = ServiceOptions.read(
        {
            "hoodie.metadata.compact.max.delta.commits": 5,
            "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.clean.fileversions.retained": 1,
        }
    )
    replaced: set[str] = set()
    since = 0
    for _ in range(20):
        newest = {piece.base_file.path for piece in open_metadata(followed.storage).view.latest_slices() if piece.base_file is not None}
        compacted = done(followed.storage, Action.COMMIT)
        followed.commit()
        served(followed.storage, one_version)
        since += 1
        if len(done(followed.storage, Action.COMMIT)) > len(compacted):
            replaced, since = newest, 0
        assert {path for path in replaced if followed.storage.head(f".hoodie/metadata/{path}")} == (replaced if since < 3 else set())
    assert done(followed.storage, Action.CLEAN)
    followed.check()


def test_what_is_pending_in_the_data_table_is_not_passed(followed: FollowedTable) -> None:
    early = followed.commit(pending=True)
    followed.commit()
    data, metadata = open_data(followed.storage), open_metadata(followed.storage)
    assert getattr(blocked_by(data, metadata), "requested_time", None) == early
    with pytest.raises(CompactionError, match=early):
        compact(data, metadata, LocalRunner(), lock_timeout_ms=1000)
    assert open_metadata(followed.storage).timeline == metadata.timeline
    followed.complete(early)
    assert blocked_by(open_data(followed.storage), metadata) is None
    assert compact(open_data(followed.storage), metadata, LocalRunner(), lock_timeout_ms=1000) is not None
    followed.check()


def test_a_plan_of_the_data_table_holds_a_compaction_back_in_version_6_only(followed: FollowedTable, table_version: TableVersion) -> None:
    followed.commit()
    table_format = open_data(followed.storage).format
    plan = Instant("20260101000000000", Action.COMPACTION, State.REQUESTED)
    path = f"{table_format.timeline_folder}/{table_format.file_name(plan)}"
    followed.storage.create(path, encode_plan(HoodieCompactionPlan(operations=())))
    followed.commit()
    served(followed.storage)
    assert len(done(followed.storage, Action.COMMIT)) == (table_version is TableVersion.NINE)


@pytest.mark.table_versions(9)
def test_what_began_before_a_compaction_and_ended_after_it_is_not_archived_before_the_next(followed: FollowedTable) -> None:
    for _ in range(8):
        followed.commit()
    early = followed.begin()
    last = followed.commit()
    assert compact(open_data(followed.storage), open_metadata(followed.storage), LocalRunner(), lock_timeout_ms=1000) is not None
    followed.commit(early)
    followed.check()
    later = [followed.commit() for _ in range(3)]
    data, metadata = open_data(followed.storage), open_metadata(followed.storage)
    assert done(followed.storage, Action.COMMIT)[-1] > last > early
    assert [instant.requested_time for instant in unmerged(metadata)] == [early, *later]
    for state, of_metadata in ((data, None), (metadata, data)):
        few, kept = ArchiveOptions(min_commits=1, max_commits=1), CleanOptions(commits_retained=1)
        planned = plan_archive(state, few, kept, CompactionOptions(), of_metadata)
        assert planned.instants
        assert max(instant.requested_time for instant in planned.instants) < early
        assert any("until that is compacted" in note for note in planned.kept)


def test_a_table_that_does_not_use_it_is_left_alone(followed: FollowedTable) -> None:
    ConfigStore(followed.storage).update({"hoodie.table.metadata.partitions": None})
    before = [entry.version for entry in followed.storage.walk()]
    served(followed.storage)
    assert [entry.version for entry in followed.storage.walk()] == before


def test_a_partition_that_was_dropped_holds_nothing_back(followed: FollowedTable) -> None:
    for _ in range(6):
        followed.commit()
        after(followed.storage)
    last = followed.commit()
    ConfigStore(followed.storage).update({"hoodie.table.metadata.partitions": "files"})
    followed.storage.delete_tree(".hoodie/metadata/record_index")
    served(followed.storage, AT_ONCE)
    assert done(followed.storage, Action.COMMIT)[-1] > last
    followed.check_files()


def test_a_file_that_hudi_could_not_read_is_not_published(followed: FollowedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        followed.commit()
    with monkeypatch.context() as patch:
        patch.setattr(files, "_MOST_BYTES", 3000)
        with pytest.raises(CompactionError, match="more file groups"):
            served(followed.storage)
    followed.check()
    served(followed.storage)
    followed.check()
    check_settled(followed.storage)


def test_a_lost_log_is_named_and_nothing_is_compacted_without_it(followed: FollowedTable) -> None:
    for _ in range(3):
        followed.commit()
    logs = [entry for entry in followed.storage.walk(".hoodie/metadata/record_index") if ".log." in entry.name]
    log = max(logs, key=lambda one: one.name)
    followed.storage.delete(log.path)
    before = open_metadata(followed.storage).timeline
    (failure,) = after_commit(followed.storage, OFTEN, WriteOptions(), LocalRunner())
    assert log.name in failure
    assert "metadata rebuild" in failure
    assert open_metadata(followed.storage).timeline == before


def test_a_damaged_metadata_table_fails_no_commit(followed: FollowedTable) -> None:
    for _ in range(3):
        followed.commit()
    log = max((entry for entry in followed.storage.walk(".hoodie/metadata/files") if ".log." in entry.name), key=lambda one: one.name)
    followed.storage.overwrite(log.path, followed.storage.read(log.path)[:-9])
    (failure,) = after_commit(followed.storage, OFTEN, WriteOptions(), LocalRunner())
    assert log.name in failure
    assert "metadata table" in failure
    assert not any(is_base_file_name(entry.name) for entry in followed.storage.walk(".hoodie/metadata/record_index"))


def check_settled(storage: Storage) -> None:
    """No trace of a dead run: nothing pending, no marker, no base file that no commit names."""
    metadata = open_metadata(storage)
    assert list(metadata.timeline.pending()) == []
    assert metadata.storage.walk(".hoodie/.temp") == []
    named = {stat.path for one in metadata.timeline.completed().writes() for stat in metadata.commit_metadata(one).write_stats()}
    start = metadata.timeline.start
    bases = [entry for entry in metadata.storage.walk() if is_base_file_name(entry.name)]
    young = [entry for entry in bases if start is None or parse_base_file("", entry.name).instant_time >= start.requested_time]
    assert {entry.path for entry in young} <= named


def _kinds(mutations: Sequence[str]) -> set[str]:
    """Which services those calls are of."""
    words = {"compaction": ".compaction.", "clean": ".clean.", "archiving": "archive"}
    return {kind for kind, word in words.items() if any(word in one or (kind == "archiving" and "history" in one) for one in mutations)}


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.LOST_ACK, Fault.TRANSIENT])
def test_a_crash_at_any_call_leaves_a_metadata_table_that_the_next_commits_settle(followed: FollowedTable, fault: Fault) -> None:
    tried: set[str] = set()
    for _ in range(16):
        followed.commit()
        calls = FaultyStorage(copied(followed.storage))
        served(calls)
        kinds = _kinds(calls.mutations)
        if not kinds <= tried:
            for call in range(1, len(calls.mutations) + 1):
                _check_crash(followed, call, fault)
            tried |= kinds
        after(followed.storage)
    assert tried == {"compaction", "clean", "archiving"}


def _check_crash(followed: FollowedTable, call: int, fault: Fault) -> None:
    storage = copied(followed.storage)
    crashed = of(followed, storage)
    with suppress(SimulatedCrash, LakehouseError):
        served(FaultyStorage(storage, call, fault))
    crashed.check()
    crashed.commit()
    crashed.check()
    served(storage)
    crashed.commit()
    served(storage, AT_ONCE)
    crashed.check()
    check_settled(storage)


def test_the_options_follow_those_of_the_data_table() -> None:
    options = ServiceOptions.read({"hoodie.clean.commits.retained": 100})
    assert clean_options(options).commits_retained == 120
    assert clean_options(ServiceOptions.read({"hoodie.clean.commits.retained": 1})).commits_retained == 3
    archiving = archive_options(options)
    archiving.check_keeps_enough(clean_options(options))
    assert (archive_options(ServiceOptions()).min_commits, archive_options(ServiceOptions()).max_commits) == (21, 31)
