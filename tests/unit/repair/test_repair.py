"""Damaged metadata: what is unaffected goes on, nothing loses its protection, and a repair leads out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_engine.errors import CorruptInstantError, FormatError, LakehouseError, MissingFileError, RestoreError, SavepointError
from lakehouse_engine.repair import RepairReport, repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.undo.savepoint import list_savepoints
from lakehouse_engine.verify import verify
from lakehouse_engine.view.history import history as table_history
from lakehouse_engine.view.protected import protected_files
from tests.crash.scenarios import COLUMNS, batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import VERSIONS, state_path, tables_of, timeline_folder
from tests.unit.undo.bringing_back import TIMEOUT, copy_of


def _empty(content: bytes) -> bytes:
    return b""


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    place = len(content) - 3
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


DAMAGES = [_empty, _cut, _flipped]


SERVED = [(kind, version) for version in VERSIONS for kind in ("cow", "mor")]


@pytest.fixture(params=SERVED, ids=lambda one: f"{one[0]}-v{one[1]}", scope="module")
def served(request: pytest.FixtureRequest) -> LocalTable:
    """Savepoints, a clean, a rollback and a restore; on merge-on-read also a pending compaction that was logged on top of."""
    storage, (kind, version) = MemoryStorage(), request.param
    with tables_of(version):
        create(storage, kind)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(4):
        table.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    table.savepoint(name="good")
    table.upsert(batch([("a", 10, "x", "taken back"), ("e", 1, "x", "e")]))
    table.restore(to=table.instants()[-2])
    table.upsert(batch([("a", 9, "x", "gone")]))
    table.rollback()
    if kind == "mor":
        table.compact()
    for version in range(20, 24):
        table.upsert(batch([("a", version, "x", f"a{version}")]))
    if kind == "mor":
        table.compact()
        table.upsert(batch([("b", 30, "y", "b30")]))
    table.clean(1)
    if kind == "mor":
        table.schedule_compaction()
        table.upsert(batch([("b", 31, "y", "b31")]))
    return table


def _damaged(served: LocalTable, name: str, damage: Callable[[bytes], bytes]) -> tuple[LocalTable, str]:
    storage = copy_of(served.storage)
    path = next(entry.path for entry in storage.list(timeline_folder(storage)) if entry.name.endswith(f".{name}"))
    storage.overwrite(path, damage(storage.read(path)))
    return LocalTable(storage, lock_timeout_ms=TIMEOUT), path


def _repaired(table: LocalTable) -> RepairReport:
    before = {entry.path: table.storage.read(entry.path) for entry in table.storage.walk()}
    would = repair(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True)
    assert {entry.path: table.storage.read(entry.path) for entry in table.storage.walk()} == before
    report = repair(table.storage, lock_timeout_ms=TIMEOUT)
    assert [(one.kind, one.what) for one in report.repaired] == [(one.kind, one.what) for one in would.repaired]
    return report


PLANS = ["savepoint", "clean", "clean.requested", "clean.inflight", "rollback", "rollback.requested", "restore", "restore.requested"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PLANS)
def test_of_a_damaged_service_file_reads_and_writes_go_on_and_a_repair_leads_out(
    served: LocalTable, name: str, damage: Callable[[bytes], bytes]
) -> None:
    table, path = _damaged(served, name, damage)
    may_be_empty = name == "clean.inflight" and damage is _empty
    assert_same_rows(table.read(), served.read())
    table.upsert(batch([("z", 1, "x", "z")]))
    told = [str(entry.note) for entry in table_history(table.state)]
    if name in ("savepoint", "clean", "rollback", "restore"):
        assert any(path in note for note in told), "the history does not name the file"
    content = table.storage.read(path)
    report = _repaired(table)
    if not may_be_empty:
        assert [one.what for one in report.repaired if one.kind == "damaged_file"] == [path]
        aside = [entry.path for entry in table.storage.list(".hoodie/.aux/damaged")]
        assert [table.storage.read(one) for one in aside] == [content]
    assert not [one for one in report.left if one.kind == "beyond_repair"]
    assert not [note for note in (entry.note for entry in table_history(table.state)) if path in str(note)]
    assert not repair(table.storage, lock_timeout_ms=TIMEOUT).repaired
    table.clean(1)
    table.archive(2, 3)
    table.upsert(batch([("z", 2, "x", "z2")]))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_savepoint_protects_all_that_it_can_have_kept_until_it_is_given_up(
    served: LocalTable, damage: Callable[[bytes], bytes]
) -> None:
    kept = {path for path, by in protected_files(served.state).items()}
    table, path = _damaged(served, "savepoint", damage)
    time = path.rpartition("/")[2].partition(".")[0].partition("_")[0]
    inflight = state_path(table.storage, f"{time}.savepoint.inflight")
    table.storage.overwrite(inflight, b"")  # as Hudi leaves it, without a copy to repair the savepoint from
    assert kept <= set(protected_files(table.state))
    table.upsert(batch([("a", 40, "x", "a40")]))
    if served.state.config.table_type == "MERGE_ON_READ":
        table.run_compaction()
    table.clean(1)
    table.archive(2, 3)
    assert all(table.storage.head(file) is not None for file in kept)
    (shown,) = list_savepoints(table.state)
    assert (shown.instant, shown.name, path in shown.comment) == (time, None, True)
    with pytest.raises(SavepointError, match=r"names that are not known: .* is damaged"):
        table.delete_savepoint("good")
    with pytest.raises(RestoreError, match="repair"):
        table.restore("latest")
    left = {one.what: one.message for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left if one.kind == "beyond_repair"}
    assert f"savepoint delete {time}" in left[path]
    table.delete_savepoint(time)
    assert list_savepoints(table.state) == []
    assert not [one for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left if one.kind == "beyond_repair"]


def test_a_savepoint_that_is_made_anew_keeps_what_it_kept(served: LocalTable) -> None:
    time = next(iter(served.state.timeline.savepointed))
    expected, kept = served.read(as_of="good"), set(protected_files(served.state))
    table, path = _damaged(served, "savepoint", _cut)
    report = _repaired(table)
    if [one.what for one in report.repaired] != [path]:
        pytest.fail(f"not made anew: {report}")
    assert kept <= set(protected_files(table.state))
    table.restore(time)
    assert_same_rows(table.read(), expected)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_plan_of_a_compaction_is_made_anew_from_what_was_logged_on_it(
    served: LocalTable, damage: Callable[[bytes], bytes]
) -> None:
    if str(served.state.config.table_type) != "MERGE_ON_READ":
        pytest.skip("copy-on-write tables have no compactions")
    table = LocalTable(copy_of(served.storage), lock_timeout_ms=TIMEOUT)
    instant = next(one.requested_time for one in table.state.timeline.pending())
    path = state_path(table.storage, f"{instant}.compaction.requested")
    table.storage.overwrite(path, damage(table.storage.read(path)))
    assert_same_rows(table.read(), served.read())
    with pytest.raises(FormatError) as caught:
        table.upsert(batch([("b", 32, "y", "b32")]))
    assert (caught.value.context["path"], "repair" in str(caught.value)) == (path, True)
    assert [one.what for one in _repaired(table).repaired] == [path]
    table.upsert(batch([("b", 32, "y", "b32"), ("a", 32, "x", "a32")]))
    before = table.read()
    table.run_compaction()
    assert_same_rows(table.read(), before)
    assert not list(table.state.timeline.pending())


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("service", ["logcompaction", "replacecommit"])
def test_a_damaged_plan_that_nothing_rests_on_goes(served: LocalTable, service: str, damage: Callable[[bytes], bytes]) -> None:
    table = LocalTable(copy_of(served.storage), lock_timeout_ms=TIMEOUT)
    expected = table.read()
    newest = max(one.requested_time for one in table.state.timeline)
    path = state_path(table.storage, f"{int(newest) + 1}.{service}.requested")
    table.storage.create(path, damage(b"Obj\x01 a plan that was whole once"))
    if service == "replacecommit" and damage is _empty:
        pytest.skip("a write requests it so")
    _repaired(table)
    assert table.storage.head(path) is None
    assert_same_rows(table.read(), expected)


@pytest.fixture(scope="module")
def archived() -> LocalTable:
    storage = MemoryStorage()
    create(storage)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(3):
        table.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    table.savepoint(name="good")
    for version in range(3, 12):
        table.upsert(batch([("a", version, "x", f"a{version}")]))
        if version in (6, 11):
            table.clean(1)
            table.archive(2, 3)
    assert len([entry for entry in storage.list(".hoodie/archived") if ".archive." in entry.name]) == 2
    return table


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_archive_file_is_in_the_way_of_history_alone_and_is_repaired(
    archived: LocalTable, number: int, damage: Callable[[bytes], bytes]
) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    path = sorted(entry.path for entry in table.storage.list(".hoodie/archived") if ".archive." in entry.name)[number]
    table.storage.overwrite(path, damage(table.storage.read(path)))
    with pytest.raises(FormatError) as caught:
        table_history(table.state, archived=True)
    assert caught.value.context["path"] == path
    for version in (20, 21, 22):
        table.upsert(batch([("a", version, "x", f"a{version}")]))
    table.clean(1)
    table.archive(2, 3)
    restored = LocalTable(copy_of(table.storage), lock_timeout_ms=TIMEOUT)
    early = archived.instants()[0]
    expected = archived.read(as_of="good")
    restored.restore("good")
    assert_same_rows(restored.read(), expected)
    with pytest.raises(LakehouseError, match="restored"):
        restored.read(query="incremental", begin=early)
    assert path in [one.what for one in _repaired(table).repaired]
    table_history(table.state, archived=True)
    table.restore("good")
    assert_same_rows(table.read(), expected)


@pytest.mark.parametrize("damage", [*DAMAGES, None])
def test_a_damaged_or_lost_commit_that_is_kept_aside_is_made_anew_from_the_archive(
    archived: LocalTable, damage: Callable[[bytes], bytes] | None
) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    path = next(entry.path for entry in table.storage.list(".hoodie/.aux/savepointed") if entry.name.endswith(".commit"))
    if damage is None:
        table.storage.delete(path)
    else:
        table.storage.overwrite(path, damage(table.storage.read(path)))
    with pytest.raises((RestoreError, CorruptInstantError)) as caught:
        table.restore("good")
    assert "repair" in str(caught.value)
    assert len(_repaired(table).repaired) == 1
    table.restore("good")
    assert_same_rows(table.read(), archived.read(as_of="good"))
    assert set(COLUMNS) <= set(table.read().column_names)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_of_a_damaged_commit_the_table_is_restored_to_the_write_before_it(kind: str, damage: Callable[[bytes], bytes]) -> None:
    table = LocalTable(MemoryStorage(), lock_timeout_ms=TIMEOUT)
    create(table.storage, kind)
    for version in range(4):
        table.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    times = table.instants()
    expected = table.read(as_of=times[1])
    path = next(entry.path for entry in table.storage.list(".hoodie") if entry.name in (f"{times[2]}.commit", f"{times[2]}.deltacommit"))
    table.storage.overwrite(path, damage(table.storage.read(path)))
    for act in (table.read, lambda: table.upsert(batch([("c", 1, "x", "c")]))):
        with pytest.raises(CorruptInstantError) as caught:
            act()
        assert caught.value.context["path"] == path
    (left,) = [one for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left if one.kind == "beyond_repair"]
    assert (left.what, f"restore to {times[1]}" in left.message) == (path, True)
    table.restore(to=times[1])
    assert_same_rows(table.read(), expected)
    table.upsert(batch([("c", 1, "x", "c")]))


def _flipped_at_end(table: LocalTable, path: str) -> None:
    table.storage.overwrite(path, _flipped(table.storage.read(path)))


@pytest.mark.parametrize("damaged", [True, False])
def test_the_checkpoint_of_live_files_is_written_anew_where_it_is_damaged_or_lost(archived: LocalTable, damaged: bool) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    (path,) = (entry.path for entry in table.storage.list(".hoodie/.aux/live"))
    known = table.state.archived_files().live.groups
    if damaged:
        _flipped_at_end(table, path)
    else:
        table.storage.delete(path)
    report = _repaired(table)
    assert {str(one.kind) for one in report.repaired} == ({"damaged_file", "no_checkpoint"} if damaged else {"no_checkpoint"})
    again = table.state.archived_files()
    assert (again.problems, again.checkpoint, set(again.live.groups)) == ((), again.boundary, set(known))
    assert not repair(table.storage, lock_timeout_ms=TIMEOUT).repaired


def test_metafiles_that_are_lost_or_damaged_are_put_back_and_made_anew(archived: LocalTable) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    lost, damaged = (f"{path}/.hoodie_partition_metadata" for path in table.state.view.partitions())
    table.storage.delete(lost)
    _flipped_at_end(table, damaged)
    told = {(str(one.kind), one.what) for one in _repaired(table).repaired}
    assert told == {("lost_metafile", lost), ("damaged_file", damaged)}
    assert verify(table.state).ok


def test_the_inflight_file_of_a_completed_commit_is_set_aside_when_it_is_damaged(archived: LocalTable) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    inflight = (entry for entry in table.storage.list(".hoodie") if entry.name.endswith(".inflight") and entry.size)
    path = next(entry.path for entry in inflight if "savepoint" not in entry.name)
    _flipped_at_end(table, path)
    assert not verify(table.state).ok
    assert [one.what for one in _repaired(table).repaired] == [path]
    assert verify(table.state).ok


def test_a_compaction_whose_plan_is_gone_is_planned_anew_from_the_logs_on_top_of_it(served: LocalTable) -> None:
    if served.state.config.table_type != "MERGE_ON_READ":
        pytest.skip("copy-on-write tables have no compactions")
    table = LocalTable(copy_of(served.storage), lock_timeout_ms=TIMEOUT)
    folder = timeline_folder(table.storage)
    path = max(entry.path for entry in table.storage.list(folder) if entry.name.endswith(".compaction.requested"))
    table.storage.delete(path)
    if table.state.order.goes_by_completion:
        # Logs go on with the slice that is there: nothing rests on a plan that is not carried out yet.
        assert _repaired(table).repaired == ()
        assert table.compact().instant is not None
    else:
        with pytest.raises(MissingFileError):
            table.read()
        assert [one.what for one in _repaired(table).repaired] == [path]
        assert_same_rows(table.read(), served.read())
    table.run_compaction()
    assert_same_rows(table.read(), served.read())


def test_of_a_lost_base_file_repair_names_the_moment_that_a_restore_leads_to(archived: LocalTable) -> None:
    table = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    path = next(piece.base_file.path for piece in table.state.view.latest_slices() if piece.base_file is not None)
    table.storage.delete(path)
    (left,) = (one for one in _repaired(table).left if one.kind == "lost_data")
    assert left.what == path
    assert f"--savepoint {archived.instants()[0]}" in left.message or "--to" in left.message
    assert verify(table.state).way_out is not None
