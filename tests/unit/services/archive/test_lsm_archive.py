"""The history that archiving writes for tables of versions 8 and 9: as Hudi's, whole wherever it dies, and for those who read beside it."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import CorruptFileError, CorruptInstantError
from lakehouse_engine.format.v8.history import VERSION_FILE, HistoryEntry, manifest_name, parse_history_file, read_history
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.services import ArchiveResult
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import ArchiveOptions, CleanOptions, CompactionOptions
from lakehouse_engine.repair.repairs.mend import mendings
from lakehouse_engine.services.archive import archive
from lakehouse_engine.storage.faults import Fault, FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.history import LsmHistory
from lakehouse_engine.verify.table import verify
from lakehouse_engine.view.archive_gaps import missed_files, unknown_parts
from lakehouse_engine.view.history import history
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import spark_fixtures, unpack_spark_fixture
from tests.support.local_table import LocalTable
from tests.unit.services.clean import tables
from tests.unit.services.clean.tables import COW, MOR, TIMEOUT_MS, content, new_table, rows, twin_of, updated

FOLDER = ".hoodie/timeline/history"
FEW = ArchiveOptions(min_commits=2, max_commits=2, merged_files=4)
APART = ArchiveOptions(min_commits=2, max_commits=2, merges=False)
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


@pytest.fixture(autouse=True, params=[TableVersion.EIGHT, TableVersion.NINE], ids=["v8", "v9"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TableVersion:
    chosen: TableVersion = request.param
    monkeypatch.setattr(tables, "VERSION", chosen)
    return chosen


def run(table: LocalTable, options: ArchiveOptions = APART) -> ArchiveResult:
    clean, compaction = CleanOptions(commits_retained=1), CompactionOptions(delta_commits=1)
    return archive(table.storage, options, lock_timeout_ms=TIMEOUT_MS, clean=clean, compaction=compaction)


def aged(table: LocalTable, times: int, options: ArchiveOptions) -> list[str]:
    """Upserts, each archived behind; their instants."""
    found = []
    for number in range(times):
        found.append(str(table.upsert(rows({1: number, 2: 0})).instant))
        run(table, options)
    return found


def lsm(table: LocalTable) -> LsmHistory:
    found = table.state.archived_timeline
    assert isinstance(found, LsmHistory)
    return found


def entries(table: LocalTable) -> list[HistoryEntry]:
    archived = lsm(table)
    return [entry for file in archived.current() for entry in read_history(archived.read(file), file)]


def names(storage: MemoryStorage) -> list[str]:
    return sorted(entry.name for entry in storage.list(FOLDER))


def memory(table: LocalTable) -> MemoryStorage:
    assert isinstance(table.storage, MemoryStorage)
    return table.storage


def state_files(table: LocalTable) -> dict[Instant, bytes]:
    return {instant: table.storage.read(file.path) for instant, file in table.state.timeline_files.items()}


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_what_is_archived_is_what_the_files_said(table_type: str) -> None:
    table = new_table(table_type)
    updated(table, 2)
    table.insert_overwrite(rows({1: 7, 2: 7}))
    table.clean(1)
    for _ in range(4):
        updated(table, 1, "b", 11)
        if table_type == MOR:
            table.compact()
        table.clean(1)
    files = state_files(table)
    result = run(table)
    stored = entries(table)
    assert {entry.instant.requested_time for entry in stored} == set(result.archived)
    assert {entry.instant.action for entry in stored} >= {Action.REPLACE_COMMIT, Action.CLEAN}
    for entry in stored:
        assert entry.metadata == files[entry.instant]
        assert entry.instant.completed_at == next(one.completed_at for one in files if one == entry.instant)
        states = {(one.action, str(one.state)): data for one, data in files.items() if one.requested_time == entry.instant.requested_time}
        if entry.instant.action is Action.REPLACE_COMMIT:
            assert entry.plan == states[Action.REPLACE_COMMIT, "inflight"]
        elif entry.instant.action is Action.CLEAN:
            assert entry.plan == states[Action.CLEAN, "requested"]
        else:
            assert entry.plan == states.get((Action.COMPACTION, "requested"))
    assert any(entry.plan for entry in stored if entry.instant.action is Action.COMMIT) is (table_type == MOR)


@pytest.mark.parametrize("version", [TableVersion.NINE], ids=["v9"], indirect=True)
@pytest.mark.parametrize("name", [name for name in spark_fixtures(("v8-1.2.0", "v9-1.2.0")) if name.endswith("_archive")])
def test_a_file_has_the_columns_of_hudis_and_hudis_table_is_archived_on(name: str, tmp_path: Path) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    storage = LocalStorage(str(folder))
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT_MS)
    before, known = lsm(table), TableState.load(storage)
    theirs = pq.ParquetFile(io.BytesIO(before.read(before.current()[0])))
    archived, snapshot = before.instants(), table.read(["_hoodie_record_key"], meta_columns=True).sort_by("_hoodie_record_key")
    number = before.newest_number()
    (path,) = run(table).files_written
    ours = pq.ParquetFile(io.BytesIO(storage.read(path)))
    assert ours.schema_arrow.equals(theirs.schema_arrow, check_metadata=False)
    assert [(ours.schema.column(at).name, ours.schema.column(at).physical_type) for at in range(6)] == [
        (theirs.schema.column(at).name, theirs.schema.column(at).physical_type) for at in range(6)
    ]
    assert (ours.metadata.metadata or {})[b"parquet.avro.schema"] == (theirs.metadata.metadata or {})[b"parquet.avro.schema"]
    after = lsm(table)
    assert after.newest_number() == number + 1
    assert storage.read(f"{FOLDER}/{VERSION_FILE}") == str(number + 1).encode()
    assert after.instants()[: len(archived)] == archived
    left = {one.requested_time for one in known.timeline} - {one.requested_time for one in table.state.timeline}
    assert {one.requested_time for one in after.instants()} - {one.requested_time for one in archived} == left
    assert table.read(["_hoodie_record_key"], meta_columns=True).sort_by("_hoodie_record_key") == snapshot
    # Of the actions that Hudi stores plans of, we do too, and of no others.
    assert {entry.instant.action for entry in entries(table) if entry.plan} <= {Action.CLEAN, Action.REPLACE_COMMIT, Action.COMMIT}
    assert verify(table.state).ok


@pytest.mark.parametrize("version", [TableVersion.NINE], ids=["v9"], indirect=True)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_history_that_is_merged_is_of_few_files_and_tells_the_same(table_type: str) -> None:
    merged, apart = new_table(table_type), new_table(table_type)
    instants = [aged(table, 22, options) for table, options in ((merged, FEW), (apart, APART))]
    times = dict(zip(*instants, strict=True))
    levels = [[file.level for file in lsm(table).current()] for table in (merged, apart)]
    assert sorted(levels[0]) == [0, 0, 0, 0, 2]
    assert levels[1] == [0] * 20
    assert [times[one.requested_time] for one in lsm(merged).instants()] == [one.requested_time for one in lsm(apart).instants()]
    shown = [[entry.instant for entry in history(table.state, archived=True)] for table in (merged, apart)]
    assert [times[instant] for instant in shown[0]] == shown[1]
    assert content(merged) == content(apart) == {1: 21, 2: 0}
    assert [content(merged, query="incremental", begin=begin) for begin in ("earliest", instants[0][-2])] == [{1: 21, 2: 0}, {1: 21, 2: 0}]
    assert verify(merged.state).ok
    live = merged.state.archived_files()
    assert (live.boundary, live.checkpoint, live.told_to) == (instants[0][-3],) * 3


def test_the_files_of_the_last_manifests_stay_and_no_others() -> None:
    table = new_table()
    aged(table, 30, FEW)
    archived = lsm(table)
    numbers = sorted(int(name[9:]) for name in names(memory(table)) if name.startswith("manifest_"))
    assert len(numbers) in (3, 4), "one more after a merge"
    assert numbers == list(range(numbers[0], archived.newest_number() + 1))
    listed = {file.name for number in numbers for file in archived.manifest(number)}
    assert set(names(memory(table))) == {*listed, *map(manifest_name, numbers), VERSION_FILE}


@pytest.mark.parametrize("version", [TableVersion.NINE], ids=["v9"], indirect=True)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_crash_anywhere_loses_nothing_and_the_next_archiving_finishes(fault: Fault, table_type: str) -> None:
    table = new_table(table_type)
    instants = aged(table, 6, FEW)
    instants.append(str(table.upsert(rows({1: 6})).instant))
    assert [file.level for file in lsm(table).current()] == [0] * 4
    merged = 0
    for call in itertools.count(1):
        inner = twin_of(memory(table))
        try:
            assert run(LocalTable(FaultyStorage(inner, call, fault)), FEW).archived
            break
        except SimulatedCrash:
            survivor = LocalTable(inner)
        merged += [file.level for file in lsm(survivor).current()] == [1]
        everything(survivor, instants[:-3])
        assert content(survivor) == {1: 6, 2: 0}
        run(survivor, FEW)
        assert survivor.instants() == instants[-2:]
        assert [file.level for file in lsm(survivor).current()] in ([1, 0], [0, 1])
        everything(survivor, instants[:-2])
        assert inner.read(f"{FOLDER}/{VERSION_FILE}") == str(lsm(survivor).newest_number()).encode()
        assert verify(survivor.state).ok
        assert content(survivor) == {1: 6, 2: 0}
        aged(survivor, 1, FEW)
        archived = lsm(survivor)
        there = {name for name in names(inner) if name.endswith(".parquet")}
        kept = (number for number in range(1, archived.newest_number() + 1) if manifest_name(number) in names(inner))
        assert there == {file.name for number in kept for file in archived.manifest(number)}
    assert call > 12
    assert merged >= 2


def everything(table: LocalTable, instants: Sequence[str]) -> None:
    """The history has these instants, maybe also what is about to leave, each once, and every file that it lists is there."""
    archived = lsm(table)
    found = [entry.instant.requested_time for entry in entries(table)]
    assert sorted(found)[: len(instants)] == list(instants)
    assert len(set(found)) == len(found)
    assert archived.lost(table.state.archived_files().counted) == ()


def test_what_a_dead_writer_left_is_written_again() -> None:
    """A manifest that did not count yet, and a file that none lists, of the name that comes next."""
    table = new_table()
    instants = aged(table, 4, APART)
    table.upsert(rows({1: 9}))
    last = instants[2]
    folder, number = memory(table), lsm(table).newest_number()
    folder.create(f"{FOLDER}/{last}_{last}_0.parquet", b"torn")
    folder.create(
        f"{FOLDER}/{manifest_name(number + 1)}", json.dumps({"files": [{"fileName": f"{last}_{last}_0.parquet", "fileLen": 4}]}).encode()
    )
    assert [one.requested_time for one in lsm(table).instants()] == instants[:2]
    assert run(table).archived == (last,)
    assert [one.requested_time for one in lsm(table).instants()] == instants[:3]
    assert lsm(table).newest_number() == number + 1


def test_a_write_that_a_restore_put_back_is_archived_once() -> None:
    table = new_table()
    instants = updated(table, 3)
    table.savepoint(instants[1], "kept")
    updated(table, 2, "b", 11)
    run(table)
    assert instants[1] in {one.requested_time for one in lsm(table).instants()}
    table.restore("kept")
    assert instants[1] in table.instants()
    expected = content(table)
    updated(table, 4, "c", 21)
    assert instants[1] in run(table).archived
    found = [entry.instant.requested_time for entry in entries(table)]
    assert found.count(instants[1]) == 1
    assert {key: value for key, value in content(table).items() if key in expected} == expected


def test_archiving_stops_before_a_torn_commit_and_changes_nothing() -> None:
    table = new_table()
    updated(table, 5)
    first = table.state.timeline.completed().instants[0]
    path = table.state.active.path(first)
    table.storage.overwrite(path, table.storage.read(path)[:-9])
    before = {entry.path for entry in table.storage.walk()}
    with pytest.raises(CorruptInstantError, match=first.requested_time):
        run(table)
    assert {entry.path for entry in table.storage.walk()} == before


class Racing(MemoryStorage):
    """Another process archives and merges when a file of the history has been read, or a manifest."""

    armed = ""

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if self.armed and self.armed in path:
            type(self).armed = ""
            table = LocalTable(self, lock_timeout_ms=TIMEOUT_MS)
            aged(table, 6, FEW)
        return data


@pytest.mark.parametrize("version", [TableVersion.NINE], ids=["v9"], indirect=True)
@pytest.mark.parametrize("armed", ["_0.parquet", "manifest_", VERSION_FILE])
@pytest.mark.parametrize("ask", ["instants", "readable_instants", "entries", "files"])
def test_who_reads_beside_archiving_and_merging_misses_nothing(ask: str, armed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    instants = aged(table, 6, FEW)
    racing = Racing()
    for entry in table.storage.walk():
        racing.create(entry.path, table.storage.read(entry.path))
    beside = LocalTable(racing)
    archived, listed = lsm(beside), lsm(beside).listed()
    monkeypatch.setattr(Racing, "armed", armed)
    if ask == "files":
        found = [one.instant for one in archived.entries_of(archived.files(listed))]
    else:
        found = [getattr(one, "instant", one) for one in getattr(archived, ask)()]
    assert {one.requested_time for one in found} >= set(instants[:4])


def damage(table: LocalTable, how: str) -> str:
    """Damage the oldest file of the history, or delete it; its name."""
    archived = lsm(table)
    name = archived.current()[0].name
    path = f"{FOLDER}/{name}"
    if how == "gone":
        table.storage.delete(path)
    else:
        table.storage.overwrite(path, bytes(len(table.storage.read(path))))
    return name


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_lost_file_of_the_history_is_told_and_repaired(how: str) -> None:
    table = new_table()
    instants = aged(table, 6, APART)
    name = damage(table, how)
    assert [finding.path for finding in verify(table.state).findings] == [f"{FOLDER}/{name}"]
    if how == "damaged":
        with pytest.raises(CorruptFileError, match=name):
            lsm(table).instants()
    for one in list(mendings(table.state)):
        assert one.act is not None
        one.act()
    assert [one.requested_time for one in lsm(table).instants()] == instants[1:4]
    assert unknown_parts(table.state) == (name,)
    assert content(table) == {1: 5, 2: 0}
    aged(table, 1, APART)
    assert unknown_parts(table.state) == (name,)


def test_a_history_that_is_gone_is_told_after_the_next_archiving_too() -> None:
    table = new_table()
    aged(table, 4, APART)
    for name in names(memory(table)):
        table.storage.delete(f"{FOLDER}/{name}")
    assert missed_files(table.state) == ("manifest_2",)
    table.upsert(rows({1: 9}))
    run(table)
    assert unknown_parts(table.state) == ("manifest_2",)
    assert lsm(table).newest_number() == 3


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_the_commit_of_a_savepoint_is_made_anew_from_the_history(how: str) -> None:
    table = new_table()
    instants = updated(table, 5)
    table.savepoint(instants[1], "kept")
    expected = content(table, as_of=instants[1])
    run(table)
    (kept,) = (entry for entry in table.storage.list(".hoodie/.aux/savepointed") if entry.name.endswith(".commit"))
    original = table.storage.read(kept.path)
    if how == "gone":
        table.storage.delete(kept.path)
    else:
        table.storage.overwrite(kept.path, original[:-9])
    for one in list(mendings(table.state)):
        assert one.act is not None
        one.act()
    assert table.storage.read(kept.path) == original
    table.restore("kept")
    assert content(table) == expected


@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_what_another_program_archived_since_the_checkpoint_is_known(table_type: str, merges: bool) -> None:
    """Hudi makes no checkpoints, so that the one of before stays the newest."""
    table = new_table(table_type)
    aged(table, 4, FEW if merges else APART)
    live = ".hoodie/.aux/live"
    known = {entry.path: table.storage.read(entry.path) for entry in table.storage.list(live)}
    instants = aged(table, 4, FEW if merges else APART)
    expected = table.state.archived_files()
    for entry in table.storage.list(live):
        table.storage.delete(entry.path)
    for path, data in known.items():
        table.storage.create(path, data)
    found = table.state.archived_files()
    assert (found.is_known, found.boundary, found.problems) == (True, instants[-3], ())
    assert found.checkpoint != expected.checkpoint
    assert {file.path for _, file in found.live.files()} == {file.path for _, file in expected.live.files()}
    assert content(table) == {1: 3, 2: 0}
    for path in known:
        table.storage.delete(path)
    found = table.state.archived_files()
    assert (found.is_known, found.boundary, found.checkpoint) == (True, instants[-3], None)
    assert {file.path for _, file in found.live.files()} == {file.path for _, file in expected.live.files()}


def test_names_say_what_is_in_a_file() -> None:
    table = new_table()
    instants = aged(table, 3, APART)
    (file,) = lsm(table).current()
    assert file == parse_history_file(f"{instants[0]}_{instants[0]}_0.parquet", file.size)
