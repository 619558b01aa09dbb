"""A commit names no file that the committing process does not see as its task wrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LateAttemptError, UnseenFileError, WriteError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.scenarios import batch, copy_of, create
from tests.support.local_table import LocalTable
from tests.support.workers import Workers

OLD = (("a", 1, "x", "old"), ("b", 1, "x", "old"))
NEW = (("a", 2, "x", "new"), ("c", 1, "x", "new"))


def content(storage: MemoryStorage) -> dict[str, bytes]:
    return {entry.path: storage.read(entry.path) for entry in storage.walk()}


def without_instants(storage: Storage) -> Storage:
    """The table as it was copied some time ago."""
    copy = copy_of(storage)
    copy.delete_tree(".hoodie/.temp")
    return copy


def rows(table: LocalTable) -> list[dict[str, Any]]:
    return sorted(table.read().to_pylist(), key=lambda row: row["id"])


def made(table_type: str) -> LocalTable:
    storage = MemoryStorage()
    create(storage, table_type)
    table = LocalTable(storage)
    table.insert(batch(OLD))
    return table


def with_logs() -> LocalTable:
    table = made("mor")
    table.upsert(batch([("a", 2, "x", "logged")]))
    table.upsert(batch([("b", 2, "x", "logged")]))
    return table


CASES: list[tuple[str, Callable[[], LocalTable], Callable[[LocalTable], object]]] = [
    ("bulk_insert", lambda: made("cow"), lambda table: table.bulk_insert(batch(NEW))),
    ("upsert, cow", lambda: made("cow"), lambda table: table.upsert(batch(NEW))),
    ("upsert, mor", lambda: made("mor"), lambda table: table.upsert(batch(NEW[:1]))),
    ("insert_overwrite", lambda: made("cow"), lambda table: table.insert_overwrite(batch(NEW))),
    ("compaction", with_logs, lambda table: table.run_compaction()),
    ("log compaction", with_logs, lambda table: table.run_compaction(log_compaction=True)),
]


@pytest.mark.parametrize(("name", "start", "act"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("how", ["private disk", "lost", "torn", "disk without the instant"])
def test_files_that_the_driver_does_not_see_are_not_published(
    name: str, start: Callable[[], LocalTable], act: Callable[[LocalTable], object], how: str
) -> None:
    table = start()
    storage = table.storage
    assert isinstance(storage, MemoryStorage)
    if "compaction" in name:
        table.schedule_compaction(log_compaction=name.startswith("log"))
    before, expected = content(storage), rows(table)

    def damage(results: list[Any]) -> None:
        written = [path for path in content(storage) if path not in before and not path.startswith(".hoodie/")]
        assert written
        for path in written:
            if how == "lost":
                storage.delete(path)
            else:
                storage.overwrite(path, storage.read(path)[:-1])

    runners = {
        "private disk": Workers(lambda: copy_of(storage)),
        "disk without the instant": Workers(lambda: without_instants(storage)),
        "lost": Workers(afterwards=damage),
        "torn": Workers(afterwards=damage),
    }
    table.runner = runners[how]
    error: type[WriteError] = LateAttemptError if how.startswith("disk") else UnseenFileError
    with pytest.raises(error) as caught:
        act(table)
    assert caught.value.context["instant"]
    assert "mount it under the same path on every worker" in str(caught.value)
    if error is UnseenFileError:
        assert caught.value.context["table"] == "crashed"
        assert caught.value.context["path"] not in before
        size = int(caught.value.context["expected"])
        assert caught.value.context.get("found") == (str(size - 1) if how == "torn" else None)
    after = content(storage)
    if "compaction" not in name:
        assert after == before
    assert {path for path in after if "/.locks/" not in path} == set(before)
    assert rows(table) == expected
    table.runner = LocalRunner(1)
    assert getattr(act(table), "instant", None) is not None
    assert (rows(table) == expected) is ("compaction" in name)


def test_many_files_of_a_partition_are_looked_up_by_one_listing() -> None:
    table = made("cow")
    table.options = {"hoodie.parquet.max.file.size": 1}
    lost = Workers(afterwards=lambda results: table.storage.delete(results[3].stat.path) and None)
    table.runner = lost
    many = [(f"k{number}", 1, "x", "v") for number in range(8)]
    with pytest.raises(UnseenFileError):
        table.bulk_insert(batch(many))
    table.runner = LocalRunner(1)
    table.bulk_insert(batch(many))
    assert len(rows(table)) == len(OLD) + len(many)
