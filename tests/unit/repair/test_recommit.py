"""The damaged record of a completed write: the table is restored to before it, or the record is made anew of the files of the write."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from lakehouse_engine.errors import CorruptInstantError, FormatError, LakehouseError
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.verify import verify
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.unit.undo.bringing_back import TIMEOUT, copy_of


def _empty(content: bytes) -> bytes:
    return b""


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


DAMAGES = [_empty, _cut, _flipped]


@pytest.fixture(params=["cow", "mor"], scope="module")
def archived(request: pytest.FixtureRequest) -> LocalTable:
    """No savepoint, the first writes archived, and on merge-on-read a compaction that is done and one that waits."""
    storage = MemoryStorage()
    create(storage, request.param)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    merges = request.param == "mor"
    for version in range(9):
        table.upsert(batch([("a", version, "x", f"a{version}"), (f"n{version}", version, "y", "new")]))
        if merges and version % 3 == 2:
            table.compact()
    table.clean(3)
    table.archive(4, 5, retain=3)
    table.upsert(batch([("b", 1, "x", "b1"), ("c", 1, "z", "c1")]))
    if merges:
        table.compact()
        table.schedule_compaction()
    table.upsert(batch([("a", 20, "x", "a20"), ("c", 2, "z", "c2")]))
    table.upsert(batch([("a", 21, "x", "a21")]))
    assert table.state.archived_files().boundary
    return table


def _damaged(whole: LocalTable, time: str, damage: Callable[[bytes], bytes]) -> tuple[LocalTable, str]:
    table = LocalTable(copy_of(whole.storage), lock_timeout_ms=TIMEOUT)
    names = {f"{time}.{end}" for end in ("commit", "deltacommit", "replacecommit")}
    (path,) = (one.path for one in table.storage.list(".hoodie") if one.name in names)
    table.storage.overwrite(path, damage(table.storage.read(path)))
    return table, path


def _stats(metadata: HoodieCommitMetadata) -> set[tuple[object, ...]]:
    return {(one.path, one.prev_commit, one.file_size_in_bytes, one.log_offset, one.num_writes) for one in metadata.write_stats()}


def _trusting(table: LocalTable) -> None:
    would = repair(table.storage, lock_timeout_ms=TIMEOUT, dry_run=True, trust_files=True)
    done = repair(table.storage, lock_timeout_ms=TIMEOUT, trust_files=True)
    # What one commit says may be needed to tell what another wrote.
    assert would.repaired
    assert {one.what for one in would.repaired} <= {one.what for one in done.repaired}


def test_each_damaged_commit_is_made_anew_of_its_files_where_that_is_asked_for(archived: LocalTable) -> None:
    moments = archived.instants()
    expected = {time: archived.read(as_of=time, meta_columns=True) for time in moments[1:]}
    changes = archived.read(query="incremental", begin=moments[0], meta_columns=True)
    for number, time in enumerate(moments):
        table, path = _damaged(archived, time, DAMAGES[number % 3])
        with pytest.raises(CorruptInstantError) as caught:
            table.read()
        assert caught.value.context["path"] == path
        assert "repair" in str(caught.value)
        content = table.storage.read(path)
        (left,) = (one for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left if one.what == path)
        assert (left.kind, "--trust-files" in left.message) == ("beyond_repair", True)
        assert table.storage.read(path) == content
        _trusting(table)
        assert content in [table.storage.read(one.path) for one in table.storage.list(".hoodie/.aux/damaged")]
        assert verify(table.state).findings == ()
        for moment in moments[max(1, number - 1) : number + 2]:
            assert_same_rows(table.read(as_of=moment, meta_columns=True), expected[moment])
        assert_same_rows(table.read(query="incremental", begin=moments[0], meta_columns=True), changes)
        stored, known = (one.state.commit_metadata(one.state.timeline.find(time)) for one in (archived, table))  # type: ignore[arg-type]
        assert (known.schema_json, known.operation_type, known.compacted) == (stored.schema_json, stored.operation_type, stored.compacted)
        assert _stats(known) == _stats(stored)
        table.upsert(batch([("a", 40, "x", "a40"), ("q", 1, "q", "q")]))
        assert not repair(table.storage, lock_timeout_ms=TIMEOUT).repaired


def test_each_commit_that_is_damaged_can_be_restored_from_to_the_active_write_before_it(archived: LocalTable) -> None:
    moments = archived.instants()
    for before, time in pairwise(moments):
        table, path = _damaged(archived, time, _flipped)
        (left,) = (one for one in repair(table.storage, lock_timeout_ms=TIMEOUT).left if one.what == path)
        assert f"restore --to {before}" in left.message
        table.restore(to=before)
        assert_same_rows(table.read(), archived.read(as_of=before))
        table.upsert(batch([("q", 1, "q", "q")]))
        assert verify(table.state).findings == ()


def test_two_damaged_commits_are_made_anew_one_after_the_other(archived: LocalTable) -> None:
    first, second = archived.instants()[1], archived.instants()[-1]
    table, _ = _damaged(archived, first, _cut)
    table, _ = _damaged(table, second, _empty)
    _trusting(table)
    assert verify(table.state).findings == ()
    assert_same_rows(table.read(), archived.read())


def test_a_file_that_is_lost_besides_keeps_the_commit_from_being_made_anew(archived: LocalTable) -> None:
    time = archived.instants()[-1]
    table, path = _damaged(archived, time, _cut)
    written = [stat.path for stat in archived.state.commit_metadata(archived.state.timeline.find(time)).write_stats()]  # type: ignore[arg-type]
    table.storage.delete(str(written[0]))
    left = {one.what: one.message for one in repair(table.storage, lock_timeout_ms=TIMEOUT, trust_files=True).left}
    assert "no file of that is there" in left[path]
    assert "restore --to" in left[path]
    with pytest.raises(FormatError):
        table.read()


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table", "delete_partitions"])
def test_what_a_replacing_write_took_out_is_told_by_what_was_noted_before(archived: LocalTable, operation: str) -> None:
    table, path, whole = _replacing(archived, operation)
    assert [one.what for one in repair(table.storage, lock_timeout_ms=TIMEOUT, trust_files=True).repaired] == [path]
    assert_same_rows(table.read(), whole.read())
    assert verify(table.state).findings == ()


def test_without_a_note_of_what_was_dropped_the_commit_is_left_and_a_restore_leads_out(archived: LocalTable) -> None:
    table, path, whole = _replacing(archived, "delete_partitions")
    table.storage.overwrite(f"{path}.inflight", b"")
    (left,) = (one for one in repair(table.storage, lock_timeout_ms=TIMEOUT, trust_files=True).left if one.what == path)
    assert "which file groups it took out" in left.message
    assert "restore --to" in left.message
    table.restore(to=whole.instants()[-2])
    assert_same_rows(table.read(), whole.read(as_of=whole.instants()[-2]))


def _replacing(archived: LocalTable, operation: str) -> tuple[LocalTable, str, LocalTable]:
    """A table whose last commit replaced file groups, with that commit damaged; its path; and the table as it was before the damage."""
    whole = LocalTable(copy_of(archived.storage), lock_timeout_ms=TIMEOUT)
    if whole.state.timeline.pending():
        whole.run_compaction()
    if operation == "delete_partitions":
        whole.delete_partitions([whole.state.view.partitions()[0]])
    else:
        getattr(whole, operation)(batch([("o", 1, "x", "over")]))
    return *_damaged(whole, whole.instants()[-1], _flipped), whole


@pytest.fixture(params=["cow", "mor"], scope="module")
def savepointed(request: pytest.FixtureRequest) -> tuple[LocalTable, str]:
    """A savepoint, and two writes after it; the second replaces a partition."""
    storage = MemoryStorage()
    create(storage, request.param)
    table = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(3):
        table.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
    table.savepoint(name="good")
    table.upsert(batch([("a", 8, "x", "later"), ("c", 1, "z", "c1")]))
    table.insert_overwrite(batch([("o", 1, "x", "over")]))
    table.upsert(batch([("b", 9, "y", "b9")]))
    return table, table.instants()[2]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", [3, 4, 5])
def test_a_savepoint_is_read_and_restored_while_a_later_commit_is_damaged(
    savepointed: tuple[LocalTable, str], number: int, damage: Callable[[bytes], bytes]
) -> None:
    whole, saved = savepointed
    table, _ = _damaged(whole, whole.instants()[number], damage)
    expected = whole.read(as_of="good")
    for moment in ("good", saved, whole.instants()[number - 1]):
        assert_same_rows(table.read(as_of=moment), whole.read(as_of=moment))
    assert_same_rows(table.read(as_of="good", query="read_optimized"), whole.read(as_of="good", query="read_optimized"))
    if number < 5:
        changes = {"query": "incremental", "begin": whole.instants()[0], "end": saved}
        assert_same_rows(table.read(**changes), whole.read(**changes))
    with pytest.raises(CorruptInstantError):
        table.read()
    table.restore("good")
    assert_same_rows(table.read(), expected)
    assert verify(table.state).findings == ()


def test_of_a_damaged_commit_before_a_savepoint_the_error_leads_to_a_repair(savepointed: tuple[LocalTable, str]) -> None:
    whole, _ = savepointed
    table, path = _damaged(whole, whole.instants()[1], _cut)
    with pytest.raises(CorruptInstantError, match="`repair` says what leads out") as caught:
        table.read(as_of="good")
    assert caught.value.context["path"] == path
    _trusting(table)
    assert_same_rows(table.read(as_of="good"), whole.read(as_of="good"))


def test_a_file_that_is_lost_beside_a_damaged_commit_is_no_fewer_rows_of_the_savepoint(savepointed: tuple[LocalTable, str]) -> None:
    whole, saved = savepointed
    table, _ = _damaged(whole, whole.instants()[3], _cut)
    piece = whole.state.view.slices_as_of(saved)[0]
    table.storage.delete(str(piece.base_file.path if piece.base_file else piece.log_files[0].path))
    with pytest.raises(LakehouseError):
        table.read(as_of="good")
