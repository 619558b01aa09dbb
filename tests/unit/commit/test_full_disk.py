"""On a disk without a free block, what makes room still runs."""

from __future__ import annotations

import errno

import pytest

from lakehouse_engine.errors import StorageError
from lakehouse_engine.repair import repair
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.scenarios import batch, copy_of, create
from tests.support.local_table import LocalTable
from tests.unit.undo.bringing_back import TIMEOUT

BLOCK = 4096


class FullDisk(MemoryStorage):
    """Has no block to give but those that were freed on it; an empty file needs none."""

    free = 1 << 40

    def create(self, path: str, data: bytes) -> None:
        self._take(path, data)
        super().create(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        self._take(path, data)  # beside the old content, until it takes its place
        self._give(path)
        super().overwrite(path, data)

    def delete(self, path: str) -> bool:
        self._give(path)
        return super().delete(path)

    def _take(self, path: str, data: bytes) -> None:
        blocks = -(-len(data) // BLOCK)
        if blocks > self.free:
            raise StorageError(f"cannot create {path!r}: the disk is full", path=path, root=self.root, errno=errno.ENOSPC)
        self.free -= blocks

    def _give(self, path: str) -> None:
        entry = self.head(path)
        self.free += -(-entry.size // BLOCK) if entry is not None and not entry.is_directory else 0


@pytest.fixture(params=["cow", "mor"])
def table(request: pytest.FixtureRequest) -> LocalTable:
    storage = MemoryStorage()
    create(storage, request.param)
    made = LocalTable(storage, lock_timeout_ms=TIMEOUT)
    for version in range(4):
        made.upsert(batch([("a", version, "x", f"a{version}"), ("b", version, "y", f"b{version}")]))
        if version == 1:
            made.savepoint(name="good")
        if request.param == "mor":
            made.compact()
    full = copy_of(storage, FullDisk())
    assert isinstance(full, FullDisk)
    full.free = 0
    return LocalTable(full, lock_timeout_ms=TIMEOUT)


def test_a_savepoint_can_be_deleted(table: LocalTable) -> None:
    table.delete_savepoint("good")
    assert not table.state.timeline.savepointed


def test_a_clean_makes_room_and_leaves_nothing_undone(table: LocalTable) -> None:
    before = table.read().sort_by("id")
    with pytest.raises(StorageError, match="full"):
        table.upsert(batch([("a", 9, "x", "a9")]))
    repair(table.storage, lock_timeout_ms=TIMEOUT)
    assert table.clean(1).files_deleted
    assert not list(table.state.timeline.pending())
    assert table.storage.head(".hoodie/.aux/hoodie.properties") is not None
    assert table.read().sort_by("id") == before
    report = repair(table.storage, lock_timeout_ms=TIMEOUT)
    assert (report.repaired, report.left) == ((), ())
