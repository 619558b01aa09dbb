"""Savepoints, restores and timelines of our tables, in this process, on tables made for it. No JVM is started."""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.recovery.figures import Figure, Limit, Ratio
from benchmarks.recovery.tables import BrokenTableError, add_files, check, long_timeline, make_table
from benchmarks.tables import copy_table
from lakehouse_engine import HoodieTable
from lakehouse_engine.read.query import Query, plan_query

SAVEPOINT = "savepoint of {files} files"
RESTORE = "restore over {commits}, {files} files to delete"
OPEN = "open, {instants} instants"
PLAN = "open and plan a snapshot, {instants} instants"
ARCHIVE = "archive {instants} instants"


@dataclass(frozen=True)
class Sizes:
    """`files` of the table with the savepoint; `timelines` are the lengths that are opened, the first one is archived too."""

    files: int
    timelines: tuple[int, ...]
    repeats: int

    @property
    def removed(self) -> int:
        """Files that the commits after the savepoint add, whatever their number."""
        return self.files // 10

    @property
    def partitions(self) -> int:
        return self.files // 10

    def restores(self) -> list[tuple[int, int]]:
        """Commits to take back, and files that they added: the same ones over more commits, then fewer and more files."""
        wanted = [*((commits, self.removed) for commits in (1, 20, 100)), (20, self.removed // 10), (20, self.removed * 10)]
        return [(commits, files) for commits, files in wanted if commits <= files]


def limits(sizes: Sizes) -> list[Limit]:
    first = sizes.timelines[0]
    found = [Limit(SAVEPOINT.format(files=sizes.files), 1)]
    found += [Limit(_restore_name(*one), 10) for one in sizes.restores()]
    return [*found, Limit(PLAN.format(instants=first), 0.2), Limit(ARCHIVE.format(instants=first), 1)]


def ratios(sizes: Sizes) -> list[Ratio]:
    """Independent of the number of commits: a hundred may cost as much as one and a half times one."""
    one, hundred = _restore_name(1, sizes.removed), _restore_name(100, sizes.removed)
    return [Ratio(f"restore of {sizes.removed} files: over 100 commits at most 1.5x over one", hundred, one, 1.5, True)]


def _restore_name(commits: int, files: int) -> str:
    return RESTORE.format(commits=f"{commits} commit" if commits == 1 else f"{commits} commits", files=files)


def figures(root: Path, sizes: Sizes) -> Iterator[Figure]:
    """Every figure, as soon as it is there. `root` is a folder for this run's tables alone."""
    yield from _with_files(root, sizes)
    for instants in sizes.timelines:
        yield from _with_instants(root, instants, sizes, archived=instants == sizes.timelines[0])


def _with_files(root: Path, sizes: Sizes) -> Iterator[Figure]:
    table = make_table(root, "files", partitioned=True)
    add_files(table, files=sizes.files, commits=10, partitions=sizes.partitions, start=0)
    check(table)

    def savepoint(copy: HoodieTable) -> str:
        made = copy.savepoint(name="kept")
        _expect(made.files, sizes.files, "files in the savepoint")
        return f"{made.files} files pinned"

    yield measure(SAVEPOINT.format(files=sizes.files), Path(table.path), savepoint, sizes.repeats)
    table.savepoint(name="kept")
    for commits, files in sizes.restores():
        yield _restored(Path(table.path), sizes, commits, files)


def _restored(table: Path, sizes: Sizes, commits: int, files: int) -> Figure:
    """The table with so many commits more, restored: on a copy each time."""
    grown = table.with_name("grown")
    copy_table(table, grown)
    add_files(HoodieTable.open(str(grown)), files=files, commits=commits, partitions=sizes.partitions, start=sizes.files)

    def restore(copy: HoodieTable) -> str:
        done = copy.restore("kept")
        _expect((len(done.rolled_back), len(done.files_deleted)), (commits, files), "commits and files taken back")
        return f"{len(done.rolled_back)} commits, {len(done.files_deleted)} files"

    found = measure(_restore_name(commits, files), grown, restore, sizes.repeats, after=lambda copy: _same_table(copy, sizes.files))
    shutil.rmtree(grown)
    return found


def _same_table(copy: HoodieTable, files: int) -> None:
    """The table of the savepoint: whole, and with its rows (one a file, numbered), no other."""
    check(copy)
    _expect(sorted(copy.to_arrow(columns=["id"])["id"].to_pylist()), list(range(files)), "keys")


def _with_instants(root: Path, instants: int, sizes: Sizes, *, archived: bool) -> Iterator[Figure]:
    table = long_timeline(root, f"timeline_{instants}", instants)
    check(table)
    path = Path(table.path)
    yield from _opened(path, instants, f"{instants}", sizes.repeats)
    if archived:

        def archive(copy: HoodieTable) -> str:
            done = copy.archive(min_commits=20, options={"hoodie.clean.commits.retained": 5})
            _expect(len(done.archived), instants - 20, f"instants archived ({'; '.join(done.kept)})")
            return f"{len(done.archived)} instants to {len(done.files_written)} files"

        yield measure(ARCHIVE.format(instants=instants), path, archive, sizes.repeats, after=check)
        archive(table)
        yield from _opened(path, 20, f"{instants}, all but 20 archived", sizes.repeats)
    shutil.rmtree(path)


def _opened(path: Path, completed: int, text: str, repeats: int) -> Iterator[Figure]:
    def opened(copy: HoodieTable) -> str:
        return f"{len(HoodieTable.open(copy.path).timeline.completed())} completed"

    def planned(copy: HoodieTable) -> str:
        plan = plan_query(HoodieTable.open(copy.path).state, Query())
        return f"{len(plan.files)} files to read"

    yield measure(OPEN.format(instants=text), path, opened, repeats)
    yield measure(PLAN.format(instants=text), path, planned, repeats)
    _expect(len(HoodieTable.open(str(path)).timeline.completed()), completed, "completed instants")


def measure(
    name: str, table: Path, run: Callable[[HoodieTable], str], repeats: int, *, after: Callable[[HoodieTable], Any] | None = None
) -> Figure:
    """`run` on a fresh copy of `table` each time, once untimed; `after` checks the last one. An error is a figure without times."""
    seconds, cpu, detail = [], [], ""
    copy = table.with_name(f"{table.name}_copy")
    try:
        for _ in range(repeats + 1):
            shutil.rmtree(copy, ignore_errors=True)
            copy_table(table, copy)
            opened = HoodieTable.open(str(copy))
            gc.collect()
            clock, busy = time.perf_counter(), time.process_time()
            detail = run(opened)
            seconds.append(round(time.perf_counter() - clock, 4))
            cpu.append(round(time.process_time() - busy, 4))
        if after is not None:
            after(HoodieTable.open(str(copy)))
    except Exception as error:  # noqa: BLE001 - whatever fails is reported, and what comes after it still measured
        return Figure(name, error=f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return Figure(name, tuple(seconds[1:]), tuple(cpu[1:]), detail)


def _expect(found: Any, expected: Any, what: str) -> None:
    if found != expected:
        raise BrokenTableError(f"{what}: {str(found)[:200]}, expected {str(expected)[:200]}")
