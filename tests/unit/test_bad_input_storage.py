"""A full disk, a forbidden one, one that fails once: a typed error, the rows as they were, and the same write works afterwards."""

from __future__ import annotations

import errno
import os
import re
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.faults import Fault, FaultyStorage
from lakehouse_engine.storage.memory import MemoryStorage
from tests.crash.checker import check_recovered, check_rows, look
from tests.crash.scenarios import CASES, COLUMNS, Case, copy_of, open_table

UPSERTS = pytest.mark.parametrize("upsert", [case for case in CASES if case.scenario.name == "upsert"], ids=str)


class FullFile:
    """A file whose disk is full after some bytes, as Arrow meets it: a bare `OSError` out of `write`."""

    def __init__(self, inner: Any, room: int, number: int) -> None:
        self._inner, self._room, self._number = inner, room, number
        self.closed = False

    def write(self, data: Any) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(self._number, os.strerror(self._number))
        return int(self._inner.write(data))

    def tell(self) -> int:
        return int(self._inner.tell())

    def flush(self) -> None:
        self._inner.flush()

    def close(self) -> None:
        self.closed = True
        self._inner.close()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class FullStorage(MemoryStorage):
    """Takes `room` bytes a data file once `full` is set."""

    def __init__(self, room: int, number: int) -> None:
        super().__init__()
        self.room, self.number, self.full = room, number, True

    def open_output(self, path: str) -> pa.NativeFile:
        inner = super().open_output(path)
        return pa.PythonFile(FullFile(inner, self.room, self.number), mode="w") if self.full else inner


@UPSERTS
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("room", [0, 100, 3000])
def test_disk_that_fills_up_inside_a_data_file(upsert: Case, room: int, number: int) -> None:
    storage = copy_of(upsert.setup().storage, FullStorage(room, number))
    with pytest.raises(StorageError, match="cannot write"):
        upsert.act(open_table(storage))
    check_rows(look(storage, COLUMNS), upsert.setup().rows)
    check_recovered(storage, look(storage, COLUMNS))
    storage.full = False
    upsert.act(open_table(storage))
    check_rows(look(storage, COLUMNS), upsert.after())
    check_recovered(storage, look(storage, COLUMNS))


@UPSERTS
@pytest.mark.parametrize("fault", [Fault.TRANSIENT, Fault.PERSISTENT])
def test_every_call_may_fail_and_the_same_write_works_afterwards(upsert: Case, fault: Fault) -> None:
    start = upsert.setup().storage
    trial = FaultyStorage(copy_of(start))
    upsert.act(open_table(trial))
    published = next(call for call, name in enumerate(trial.mutations, 1) if re.fullmatch(r"create .*\.(delta)?commit", name))
    for call in range(1, len(trial.mutations) + 1):
        storage = copy_of(start)
        committed = call > published  # markers and the heartbeat are left to do
        try:
            upsert.act(open_table(FaultyStorage(storage, call, fault)))
        except StorageError:
            assert not committed
        else:
            assert committed
        check_rows(look(storage, COLUMNS), upsert.after() if committed else upsert.setup().rows)
        upsert.act(open_table(storage))
        check_rows(look(storage, COLUMNS), upsert.after())
        check_recovered(storage, look(storage, COLUMNS))


class ForbiddenStorage(MemoryStorage):
    """Refuses every change below a partition, as a directory of another user does."""

    forbidden = True

    def create(self, path: str, data: bytes) -> None:
        self._check(path)
        super().create(path, data)

    def open_output(self, path: str) -> pa.NativeFile:
        self._check(path)
        return super().open_output(path)

    def _check(self, path: str) -> None:
        if self.forbidden and path.startswith("part="):
            raise StorageError(f"cannot write {path!r}: access is denied", path=path)


@UPSERTS
def test_forbidden_partition_leaves_the_table_as_it_was(upsert: Case) -> None:
    storage = copy_of(upsert.setup().storage, _allowing(ForbiddenStorage()))
    storage.forbidden = True
    before = {entry.path: storage.read(entry.path) for entry in storage.walk()}
    with pytest.raises(StorageError, match="denied"):
        upsert.act(open_table(storage))
    assert {entry.path: storage.read(entry.path) for entry in storage.walk()} == before
    storage.forbidden = False
    upsert.act(open_table(storage))
    check_rows(look(storage, COLUMNS), upsert.after())


def _allowing(storage: ForbiddenStorage) -> ForbiddenStorage:
    storage.forbidden = False
    return storage
