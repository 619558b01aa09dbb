"""Task attempts that outlive their write leave no row too many, and nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LateAttemptError
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.tasks.file_writer import BaseFileWriter
from tests.crash.scenarios import batch, create
from tests.support.local_table import LocalTable
from tests.support.workers import Retrying, Second, data_file, marker

ROWS = [("a", 1, "x", "1"), ("b", 1, "y", "1"), ("c", 1, "y", "1")]
CHANGES = [("a", 2, "x", "2"), ("b", 2, "y", "2"), ("d", 1, "x", "2")]


POINTS = {"before its marker": lambda: marker, "between marker and file": lambda: data_file, "before its last look": Second}


def made(table_type: str) -> LocalTable:
    storage = MemoryStorage()
    create(storage, table_type)
    return LocalTable(storage)


def filled(table_type: str) -> LocalTable:
    table = made(table_type)
    table.insert(batch(ROWS))
    return table


def logged() -> LocalTable:
    table = filled("mor")
    table.upsert(batch([("a", 2, "x", "2")]))
    table.upsert(batch([("a", 3, "x", "3")]))
    return table


CASES: dict[str, tuple[Callable[[], LocalTable], Callable[[LocalTable], object]]] = {
    "bulk_insert": (lambda: made("cow"), lambda table: table.bulk_insert(batch(ROWS))),
    "insert, mor": (lambda: made("mor"), lambda table: table.insert(batch(ROWS))),
    "upsert, cow": (lambda: filled("cow"), lambda table: table.upsert(batch(CHANGES))),
    "upsert, mor": (lambda: filled("mor"), lambda table: table.upsert(batch(CHANGES[:2]))),
    "compaction": (logged, lambda table: table.run_compaction()),
    "log compaction": (logged, lambda table: table.run_compaction(log_compaction=True)),
}


def files(table: LocalTable) -> dict[str, bytes]:
    assert isinstance(table.storage, MemoryStorage)
    return {entry.path: table.storage.read(entry.path) for entry in table.storage.walk()}


def rows(table: LocalTable) -> list[tuple[str, str]]:
    return sorted((row["id"], row["v"]) for row in table.read().to_pylist())


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", CASES)
def test_an_attempt_that_goes_on_after_the_commit_of_its_retry_leaves_nothing(name: str, point: str) -> None:
    start, act = CASES[name]
    table, plain = start(), start()
    for one in (table, plain):
        if "compaction" in name:
            one.schedule_compaction(log_compaction=name.startswith("log"))
    act(plain)
    retrying = table.runner = Retrying(POINTS[point]())
    act(table)
    committed = files(table)
    outcome = retrying.go_on()
    assert isinstance(outcome, LateAttemptError)
    assert files(table) == committed
    assert rows(table) == rows(plain)


@pytest.mark.parametrize("point", POINTS)
def test_an_attempt_that_goes_on_after_its_write_was_taken_back_leaves_nothing(point: str) -> None:
    table = filled("cow")
    before = files(table)
    retrying = table.runner = Retrying(POINTS[point]())

    def fails(function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
        Retrying.run(retrying, function, tasks, name=name)
        raise RuntimeError("a task failed for good")

    retrying.run = fails  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        table.bulk_insert(batch(CHANGES))
    assert isinstance(retrying.go_on(), LateAttemptError)
    assert files(table) == before
    table.runner = LocalRunner(1)
    assert rows(table) == sorted((row[0], row[3]) for row in ROWS)


def test_a_failing_late_attempt_takes_its_half_file_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("cow")
    retrying = table.runner = Retrying(data_file)
    table.bulk_insert(batch(ROWS))
    committed = files(table)
    def breaks(self: BaseFileWriter) -> dict[str, str]:
        raise OSError("the staged rows are gone")

    monkeypatch.setattr(BaseFileWriter, "_footer", breaks)
    assert isinstance(retrying.go_on(), OSError)
    assert files(table) == committed


def test_two_attempts_of_a_task_write_files_of_one_group() -> None:
    table = made("cow")
    names: list[str] = []

    class Twice(LocalRunner):
        def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, name: str) -> list[Any]:
            results = [super(Twice, self).run(function, tasks, name=name) for _ in range(2)]
            if hasattr(tasks[0], "context"):
                names.extend(status.stat.path for statuses in results for status in statuses)
            return results[1]

    table.runner = Twice()
    table.bulk_insert(batch(ROWS))
    assert len(set(names)) == 4
    assert len({name.split("_")[0] for name in names}) == 2
    assert rows(table) == sorted((row[0], row[3]) for row in ROWS)


def test_an_attempt_asks_twice_whether_its_write_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made("cow")
    asked: list[str] = []
    head = MemoryStorage.head

    def counted(storage: MemoryStorage, path: str) -> Any:
        asked.append(path)
        return head(storage, path)

    monkeypatch.setattr(MemoryStorage, "head", counted)
    written = table.bulk_insert(batch(ROWS))
    assert written.files_created == 2
    assert len([path for path in asked if path.endswith(".open")]) == 2 * written.files_created
