"""What must be there is known whatever was archived: a lost or shortened file is named in every query and by every write that merges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.commit.checkpoint import renew_checkpoint
from lakehouse_engine.errors import CorruptFileError, CorruptLogError, LakehouseError, MissingFileError
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.verify.metadata import check_checkpoints
from lakehouse_engine.verify.report import FindingKind
from lakehouse_engine.verify.retained import retained_files
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
CHECKPOINTS = ".hoodie/.aux/live"
Damage = Callable[[MemoryStorage, str], object]


def rows(keys: range, ts: int, part: str = "x") -> pa.Table:
    count = len(keys)
    return pa.table({"id": [*keys], "part": [part] * count, "ts": [ts] * count, "v": [f"v{ts}"] * count}, schema=SCHEMA)


def made(kind: str, *, archived: bool = True) -> LocalTable:
    """Ten rows in partition x (of which three are updated, in a log where the table has logs); then commits to y only."""
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], kind))
    table = LocalTable(storage)
    table.upsert(rows(range(10), 1))
    table.upsert(rows(range(3), 2))
    for step in range(3, 7):
        table.upsert(rows(range(100, 103), step, "y"))
        if kind == "mor":
            table.compact() if step == 4 else None
    if archived:
        table.archive(2, 3)
        assert table.state.archived_files().boundary, "nothing was archived"
    return table


def files(storage: Storage, ending: str) -> list[str]:
    return [entry.path for entry in storage.walk("part=x") if ending in entry.name]


def cut(storage: MemoryStorage, path: str, size: int) -> None:
    content = storage.read(path)
    storage.delete(path)
    storage.create(path, content[:size])


READS: dict[str, dict[str, Any]] = {
    "snapshot": {},
    "incremental": {"query": "incremental", "begin": "000"},
    "as of the newest": {"as_of": "newest"},
}


def read(table: LocalTable, query: dict[str, Any]) -> pa.Table:
    newest = table.instants()[-1]
    return table.read(**{name: newest if value == "newest" else value for name, value in query.items()})


@pytest.mark.parametrize("forgotten", [False, True], ids=["checkpoint", "no checkpoint"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_lost_base_file_of_an_archived_commit_is_named_by_every_read_and_merge(kind: str, forgotten: bool) -> None:
    table = made(kind)
    if forgotten:
        table.storage.delete_tree(CHECKPOINTS)
    assert table.read().num_rows == 13
    lost = max(files(table.storage, ".parquet"), key=lambda path: path.rpartition("_")[2])
    table.storage.delete(lost)
    for query in (*READS.values(), {"query": "read_optimized"}):
        with pytest.raises(MissingFileError) as caught:
            read(table, query)
        assert caught.value.context["path"] == lost
    with pytest.raises(MissingFileError):
        table.upsert(rows(range(10), 9))
    assert lost in retained_files(table.state)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_partition_that_is_gone_with_its_directory_is_noticed(kind: str, archived: bool) -> None:
    table = made(kind, archived=archived)
    table.storage.delete_tree("part=x")
    for query in (*READS.values(), {"query": "read_optimized"}):
        with pytest.raises(MissingFileError, match="part=x"):
            read(table, query)
    with pytest.raises(MissingFileError):
        table.upsert(rows(range(10), 9))


@pytest.mark.parametrize("forgotten", [False, True], ids=["checkpoint", "no checkpoint"])
@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (lambda storage, path: storage.delete(path), MissingFileError),
        (lambda storage, path: cut(storage, path, 0), CorruptLogError),
        (lambda storage, path: cut(storage, path, 40), CorruptLogError),
    ],
    ids=["gone", "empty", "cut"],
)
def test_a_damaged_log_of_an_archived_commit_is_not_answered_with_older_values(
    damage: Damage, error: type[LakehouseError], forgotten: bool
) -> None:
    table = LocalTable(MemoryStorage())
    create_table(table.storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], "mor"))
    table.upsert(rows(range(10), 1))
    table.upsert(rows(range(3), 2))
    for step in range(3, 6):
        table.insert_overwrite(rows(range(100, 103), step, "y"))
    table.clean(1)
    archive(table)
    if forgotten:
        table.storage.delete_tree(CHECKPOINTS)
    (log,) = files(table.storage, ".log.")
    assert sorted(set(table.read()["v"].to_pylist())) == ["v1", "v2", "v5"]
    assert isinstance(table.storage, MemoryStorage)
    damage(table.storage, log)
    for query in READS.values():
        with pytest.raises(error) as caught:
            read(table, query)
        assert caught.value.context["path"] == log
    with pytest.raises(error):
        table.upsert(rows(range(10), 9))
    assert table.read(query="read_optimized").num_rows == 13, "base files are whole"


def archive(table: LocalTable) -> None:
    """Past the delta commits that the next compaction is reckoned from, as a table with a rare compaction has them."""
    from lakehouse_engine.commit.locked import locked_table
    from lakehouse_engine.options import ArchiveOptions
    from lakehouse_engine.services.archive.execute import execute_archive

    with locked_table(table.storage, lock_timeout_ms=1000) as state:
        writes = [*state.timeline.completed().writes()]
        execute_archive(state, writes[:3], ArchiveOptions())


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("change", [-7, 5], ids=["shorter", "longer"])
def test_a_base_file_of_another_size_than_was_written_is_named(archived: bool, change: int) -> None:
    table = made("cow", archived=archived)
    path = max(files(table.storage, ".parquet"), key=lambda path: path.rpartition("_")[2])
    content = table.storage.read(path)
    table.storage.delete(path)
    table.storage.create(path, content[:change] if change < 0 else content + b"x" * change)
    with pytest.raises(CorruptFileError) as caught:
        table.read()
    assert caught.value.context["path"] == path
    with pytest.raises(CorruptFileError):
        table.upsert(rows(range(10), 9))


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_partition_is_read_without_its_metafile_and_a_write_puts_it_back(kind: str, archived: bool) -> None:
    table = made(kind, archived=archived)
    expected, optimized = table.read(meta_columns=True), table.read(query="read_optimized", meta_columns=True)
    metafile = "part=x/.hoodie_partition_metadata"
    table.storage.delete(metafile)
    assert table.state.view.without_metafile == ("part=x",)
    assert_same_rows(table.read(meta_columns=True), expected)
    assert_same_rows(table.read(query="read_optimized", meta_columns=True), optimized)
    assert table.read(as_of=table.instants()[-1]).num_rows == expected.num_rows
    table.upsert(rows(range(2), 9))
    assert table.storage.head(metafile) is not None
    assert table.read().num_rows == 13


def test_what_others_archived_is_known_from_the_archive_and_renewed_into_a_checkpoint() -> None:
    table = made("cow")
    table.storage.delete_tree(CHECKPOINTS)
    known = table.state.archived_files()
    assert (known.checkpoint, known.is_known, known.problems) == (None, True, ())
    time = renew_checkpoint(table.state)
    assert time == known.boundary
    again = table.state.archived_files()
    assert again.checkpoint == time
    assert {group: live.base for group, live in again.live.groups.items()} == {
        group: live.base for group, live in known.live.groups.items()
    }
    assert renew_checkpoint(table.state) is None


def test_damage_of_what_tells_of_archived_writes_fails_no_read_of_a_whole_table() -> None:
    table = made("cow")
    expected = table.read(meta_columns=True)
    (checkpoint,) = [entry.path for entry in table.storage.walk(CHECKPOINTS)]
    content = table.storage.read(checkpoint)
    table.storage.overwrite(checkpoint, content[:20] + bytes([content[20] ^ 4]) + content[21:])
    assert_same_rows(table.read(meta_columns=True), expected)
    found = table.state.archived_files()
    assert (found.is_known, [path for path, _ in found.problems]) == (True, [checkpoint]), "the archive still tells"
    assert [(finding.kind, finding.path) for finding in check_checkpoints(table.state)] == [(FindingKind.CORRUPT_CHECKPOINT, checkpoint)]
    (archive,) = [entry.path for entry in table.storage.walk(".hoodie/archived") if "archive" in entry.name]
    cut(table.storage, archive, 100)  # type: ignore[arg-type]
    assert_same_rows(table.read(meta_columns=True), expected)
    found = table.state.archived_files()
    assert (found.is_known, {path for path, _ in found.problems}) == (False, {checkpoint, archive})
    assert renew_checkpoint(table.state) is not None
    lost = max(files(table.storage, ".parquet"), key=lambda path: path.rpartition("_")[2])
    table.storage.delete(lost)
    with pytest.raises(MissingFileError, match=r"part=x"):
        table.read()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_restore_behind_a_checkpoint_makes_it_count_no_more(kind: str) -> None:
    table = made(kind, archived=False)
    saved = table.savepoint(table.instants()[1], "s").instant
    before = table.read(as_of=saved)
    table.upsert(rows(range(50, 60), 20, "z"))
    table.compact() if kind == "mor" else None
    table.upsert(rows(range(10), 21))
    for step in range(22, 25):
        table.upsert(rows(range(100, 103), step, "y"))
    table.archive(2, 3)
    kept = [(entry.path, table.storage.read(entry.path)) for entry in table.storage.walk(CHECKPOINTS)]
    assert kept
    table.restore("s")
    assert_same_rows(table.read(), before)
    for path, content in kept:  # as if a restore of Hudi's, which does not know of it, had left it
        if table.storage.head(path) is None:
            table.storage.create(path, content)
    assert_same_rows(table.read(), before)
    table.upsert(rows(range(10), 30))
    assert table.read().num_rows == before.num_rows
    for step in range(31, 35):
        table.upsert(rows(range(100, 103), step, "y"))
    table.archive(2, 3)
    assert table.read().num_rows == before.num_rows + 3
    assert len(LiveCheckpoints(table.storage).times()) == 1


def test_groups_that_were_replaced_and_cleaned_are_not_missed() -> None:
    table = made("cow", archived=False)
    old = {FileGroupId(piece.partition_path, piece.file_id) for piece in table.state.view.latest_slices("part=x")}
    table.insert_overwrite(rows(range(4), 9))
    for step in range(10, 14):
        table.upsert(rows(range(100, 103), step, "y"))
    table.clean(1)
    table.archive(2, 3)
    live = table.state.archived_files().live
    assert not old & set(live.groups)
    assert table.read().num_rows == 7
    table.storage.delete_tree(CHECKPOINTS)
    assert table.read().num_rows == 7
