"""Files of completed writes that no commit names: no query reads them, verify names them, the next write and repair remove them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.commit.concurrency.attempts import close_to_attempts
from lakehouse_engine.format.file_names import marker_folder
from lakehouse_engine.model.live_files import LiveCheckpoint, LiveFiles
from lakehouse_engine.repair.disorder import DisorderKind
from lakehouse_engine.repair.service import repair
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.checkpoints import LiveCheckpoints
from lakehouse_engine.verify import verify
from lakehouse_engine.verify.report import FindingKind
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.tasks.append import AppendTask, GroupAppend, append_logs
from tests.crash.scenarios import batch, create, open_table
from tests.support.delta_table import DeltaTable, numbers
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows, read_with_hudi_rs

ROWS = [("a", 1, "x", "1"), ("b", 1, "y", "1"), ("c", 1, "y", "1")]
LATER = [("e", 1, "x", "1")]


def made(table_type: str, storage: Storage | None = None) -> LocalTable:
    storage = MemoryStorage() if storage is None else storage
    create(storage, table_type)
    table = open_table(storage)
    table.insert(batch(ROWS))
    table.upsert(batch([("a", 2, "x", "2")]))
    return table


def archived(table: LocalTable) -> LocalTable:
    """The first commits, and the files in partition y with them, are archived."""
    first = table.instants()[0]
    for number in range(4):
        table.upsert(batch([("a", 3 + number, "x", str(3 + number))]))
    table.archive(2, 3)
    assert first not in table.instants()
    return table


def base_of(table: LocalTable, partition: str) -> str:
    [piece] = table.state.view.latest_slices(partition)
    assert piece.base_file is not None
    return piece.base_file.path


def same_group(path: str) -> str:
    file_id, _, time = path.split("_")
    return f"{file_id}_999999-9-9_{time}"


def other_group(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/0000late-0_0-0-1_{name.split('_')[2]}"


def whole(content: bytes) -> bytes:
    return content


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def plant(table: LocalTable, partition: str, name: Callable[[str], str], cut: Callable[[bytes], bytes]) -> str:
    path = base_of(table, partition)
    content = cut(table.storage.read(path))
    with table.storage.open_output(name(path)) as sink:
        sink.write(content)
    return name(path)


def answers(table: LocalTable) -> list[Any]:
    """What every kind of query says, as of every instant that can be read."""
    times = table.instants()
    queries: list[dict[str, Any]] = [{}, {"query": "read_optimized"}, {"query": "incremental", "begin": times[0]}]
    queries += [{"as_of": time} for time in times]
    return [sorted(map(str, table.read(meta_columns=True, **query).to_pylist())) for query in queries]


def is_there(table: LocalTable, path: str) -> bool:
    return table.storage.head(path) is not None


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("history", [lambda table: table, archived], ids=["active", "archived"])
@pytest.mark.parametrize("name", [same_group, other_group])
@pytest.mark.parametrize("cut", [whole, half])
def test_a_late_base_file_is_not_read_is_told_of_and_removed(
    table_type: str, history: Callable[[LocalTable], LocalTable], name: Callable[[str], str], cut: Callable[[bytes], bytes]
) -> None:
    table = history(made(table_type))
    before = answers(table)
    stray = plant(table, "part=y", name, cut)
    assert answers(table) == before
    [finding] = verify(table.state).findings
    assert (finding.kind, finding.path) == (FindingKind.LEFTOVER_FILE, stray)
    table.upsert(batch(LATER))
    assert not is_there(table, stray)
    assert verify(table.state).ok


@pytest.mark.parametrize("cut", [whole, half])
def test_repair_removes_late_files(cut: Callable[[bytes], bytes]) -> None:
    table = archived(made("mor"))
    before = answers(table)
    strays = {plant(table, "part=y", same_group, cut), plant(table, "part=x", other_group, cut)}
    wanted = repair(table.storage, lock_timeout_ms=1000, dry_run=True).repaired
    assert {one.what for one in wanted if one.kind is DisorderKind.STRAY_FILE} == strays
    assert all(is_there(table, stray) for stray in strays)
    report = repair(table.storage, lock_timeout_ms=1000)
    assert {one.what for one in report.repaired} == strays
    assert not any(is_there(table, stray) for stray in strays)
    assert (report.left, answers(table)) == ((), before)


def test_a_late_file_with_its_marker_goes_with_the_next_write_anywhere() -> None:
    table = archived(made("cow"))
    stray = plant(table, "part=y", same_group, half)
    time = stray.rpartition("_")[2].removesuffix(".parquet")
    table.storage.create(f"{marker_folder(time)}/{stray}.marker.CREATE", b"")
    table.bulk_insert(batch(LATER))
    assert not is_there(table, stray)
    assert table.storage.walk(marker_folder(time)) == []


def test_a_clean_does_not_take_a_late_file_for_the_newest_version() -> None:
    table = made("cow")
    table.upsert(batch(LATER))
    base = base_of(table, "part=x")
    # The task for this group found nothing to change in that commit, so that no stat names a file; another attempt of it came late.
    table.upsert(batch([("b", 6, "y", "3")]))
    newest = table.instants()[-1]
    stray = f"{base.split('_')[0]}_0-0-1_{newest}.parquet"
    with table.storage.open_output(stray) as sink:
        sink.write(table.storage.read(base))
    expected = sorted(map(str, table.read().to_pylist()))
    table.clean(1)
    assert is_there(table, base)
    assert sorted(map(str, table.read().to_pylist())) == expected


def test_what_a_savepoint_pins_is_no_stray() -> None:
    table = made("cow")
    table.savepoint()
    pinned = base_of(table, "part=y")
    archived(table)
    table.upsert(batch([("b", 9, "y", "9")]))
    repair(table.storage, lock_timeout_ms=1000)
    assert is_there(table, pinned)


def test_files_of_commits_that_others_archived_count_as_they_did() -> None:
    """Without a checkpoint that tells all of them it is not known what was named."""
    table = archived(made("cow"))
    checkpoints = LiveCheckpoints(table.storage)
    [time] = checkpoints.times()
    stored = checkpoints.read(time)
    assert stored.told_to == time
    groups = {group: live for group, live in stored.live.groups.items() if group.partition_path != "part=y"}
    checkpoints.write(time, LiveCheckpoint(LiveFiles(groups), stored.archive_number))
    assert sorted(row["id"] for row in table.read().to_pylist()) == ["a", "b", "c"]
    assert verify(table.state, quick=True).ok
    table.upsert(batch(LATER))
    assert sorted(row["id"] for row in table.read().to_pylist()) == ["a", "b", "c", "e"]


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_files_of_a_table_that_lost_its_archive_stay_when_it_is_archived_again(table_type: str) -> None:
    table = archived(made(table_type))
    for folder in (".hoodie/.aux/live", ".hoodie/archived"):
        assert table.storage.walk(folder)
        table.storage.delete_tree(folder)
    expected = sorted(map(str, table.read().to_pylist()))
    for number in range(4):
        table.upsert(batch([("d", 3 + number, "z", str(3 + number))]))
    table.archive(2, 3)
    table.delete(pa.table({"id": ["d"]}))
    repair(table.storage, lock_timeout_ms=1000)
    assert sorted(map(str, table.read().to_pylist())) == expected


def test_a_commit_that_does_not_tell_all_its_files_leaves_them_as_they_were() -> None:
    table = made("cow")
    state = table.state
    instant = state.timeline.completed().writes().instants[0]
    metadata = state.commit_metadata(instant)
    partition, stats = next((path, stats) for path, stats in metadata.partition_to_write_stats.items() if path == "part=y")
    quirky = {**metadata.partition_to_write_stats, partition: tuple(replace(stat, path=None) for stat in stats)}
    path = f"{state.format.timeline_folder}/{state.format.file_name(instant)}"
    table.storage.overwrite(path, state.format.encode_commit(replace(metadata, partition_to_write_stats=quirky)))
    assert sorted(row["id"] for row in table.read().to_pylist()) == ["a", "b", "c"]


# logs

SMALL = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])


def small(ids: range, v: str, ts: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids), "ts": [ts] * len(ids)}, schema=SMALL)


def log(table: DeltaTable, time: str, rows: pa.Table) -> str:
    """As an attempt of the write `time` would, whether it is open or not."""
    piece = table.piece()
    given = GroupAppend(piece, piece.base_instant, numbers(rows.num_rows))
    context = table.open_context(time)
    [status] = append_logs(AppendTask(context, 1, (given,), table.keyed(rows)))
    close_to_attempts(table.storage, time)
    table.storage.delete_tree(marker_folder(time))
    assert status.stat is not None
    return str(status.stat.path)


def logged(tmp_path: Path) -> DeltaTable:
    table = DeltaTable(tmp_path / "t", SMALL, ordering="ts")
    table.insert(small(range(3), "base", 1))
    open_table(table.storage).upsert(small(range(2), "logged", 2))
    return table


@pytest.mark.parametrize("history", ["active", "archived"])
@pytest.mark.parametrize("cut", [whole, half])
def test_a_late_log_is_not_read_is_told_of_and_removed(tmp_path: Path, history: str, cut: Callable[[bytes], bytes]) -> None:
    table = logged(tmp_path)
    local = LocalTable(LocalStorage(str(table.folder)))
    time = local.instants()[-1]
    if history == "archived":
        for number in range(4):
            local.upsert(small(range(2, 3), f"v{number}", 3 + number))
        local.archive(2, 3)
        assert time not in local.instants()
    before = answers(local)
    stray = log(table, time, small(range(3), "stray", 9))
    (table.folder / stray).write_bytes(cut((table.folder / stray).read_bytes()))
    assert answers(local) == before
    [finding] = verify(TableState.load(table.storage)).findings
    assert (finding.kind, finding.path) == (FindingKind.LEFTOVER_FILE, stray)
    local.upsert(small(range(1), "next", 20))
    if cut is half:
        repair(table.storage, lock_timeout_ms=1000)
    assert not is_there(local, stray)
    assert verify(local.state).ok
    assert_same_rows(read_with_hudi_rs(table.folder), local.read(meta_columns=True))


def test_a_compaction_does_not_merge_a_late_log(tmp_path: Path) -> None:
    table = logged(tmp_path)
    local = LocalTable(LocalStorage(str(table.folder)))
    before = sorted(map(str, local.read().to_pylist()))
    log(table, local.instants()[-1], small(range(3), "stray", 9))
    local.compact()
    assert sorted(map(str, local.read().to_pylist())) == before


def archived_behind(table: LocalTable, saved: str, expected: pa.Table) -> None:
    """Archiving passes the savepoint; reads as of it give what is expected at each step."""
    for number in range(5):
        table.upsert(small(range(3), f"v{number}", 20 + number))
        table.compact()
        table.clean(1)
        table.archive(2, 3)
        assert_same_rows(table.read(meta_columns=True, as_of=saved), expected)
    assert saved < table.state.archived_files().boundary


def test_a_savepoint_does_not_keep_a_late_log(tmp_path: Path) -> None:
    table = logged(tmp_path)
    local = LocalTable(LocalStorage(str(table.folder)))
    stray = log(table, local.instants()[-1], small(range(3), "stray", 9))
    saved = local.savepoint().instant
    expected = local.read(meta_columns=True, as_of=saved)
    assert sorted(expected["v"].to_pylist()) == ["base", "logged", "logged"]
    archived_behind(local, saved, expected)
    assert not is_there(local, stray)
    local.restore(saved)
    assert_same_rows(local.read(meta_columns=True), expected)
    assert_same_rows(read_with_hudi_rs(table.folder), expected)


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("name", [same_group, other_group])
def test_hudi_rs_reads_no_late_file_after_the_next_write(tmp_path: Path, table_type: str, name: Callable[[str], str]) -> None:
    table = made(table_type, LocalStorage(str(tmp_path / "t")))
    plant(table, "part=y", name, whole)
    table.upsert(batch(LATER))
    assert_same_rows(read_with_hudi_rs(tmp_path / "t"), table.read(meta_columns=True))


def test_a_writer_at_work_keeps_its_files(tmp_path: Path) -> None:
    """Files of an instant that is pending are none of completed ones."""
    table = made("cow")
    seen: list[bool] = []
    inner = table.runner.run

    def run(function: Any, tasks: Any, *, name: str) -> Any:
        results = inner(function, tasks, name=name)
        if name == "write":
            written = [status.stat.path for statuses in results for status in statuses]
            assert not verify(table.state, quick=True).findings
            seen.extend(is_there(table, path) for path in written)
        return results

    table.runner.run = run  # type: ignore[method-assign]
    table.upsert(batch(LATER))
    assert seen == [True]
