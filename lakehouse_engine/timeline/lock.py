"""The table lock: one writer changes the timeline at a time, across threads and processes.

Threads of one process queue at a lock in memory. Then come the providers (`timeline/locks`), always in this order: the kernel's lock on
a file below `.hoodie/.locks`, by which the processes of this engine are ordered cheaply (in an object store Hudi's lock object there), and
where the table says that Hudi writes it too, Hudi's lock file. They are given back in the opposite order.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Protocol

from lakehouse_engine.errors import LockError, OptionError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import LOCK_TIMEOUT_MS, LockOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import in_object_store
from lakehouse_engine.storage.read_only import check_writable
from lakehouse_engine.timeline.locks.holder import Holder, describe, describe_self, parse_holder
from lakehouse_engine.timeline.locks.hudi_file import HudiFileLock
from lakehouse_engine.timeline.locks.kernel import KernelLock, kernel_lock_holder
from lakehouse_engine.timeline.locks.mounts import mount_without_flock
from lakehouse_engine.timeline.locks.provider import LockProvider, timed_out
from lakehouse_engine.timeline.locks.settings import (
    check_kernel_lock_is_kept,
    hudi_file_lock,
    lock_options,
    storage_lock,
    stored_lock_options,
    table_folder,
)
from lakehouse_engine.timeline.locks.storage_lock import StorageLock
from lakehouse_engine.timeline.locks.waiting import Waiting

LOCK_FILE = ".hoodie/.locks/table.lock"
WRITES_PREFIX = "write-"
"""What the names of locks beside it begin with that writers hold while they make their files, and not the table's."""
_MOMENT = 0.01
"""Seconds that a thread waits for another one before others are told that it waits."""


class Lock(Protocol):
    """Excludes other writers of a table between entering and leaving; may be entered again by the thread that holds it."""

    def __enter__(self) -> Lock: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


@dataclass(slots=True)
class _ProcessLock:
    """What the threads of this process share for one table."""

    threads: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0
    owner: int = 0
    providers: list[LockProvider] = field(default_factory=list)
    holder: str = ""


_LOCKS: dict[str, _ProcessLock] = {}
_LOCKS_GUARD = threading.Lock()


def _forget_after_fork() -> None:
    global _LOCKS_GUARD
    for lock in _LOCKS.values():
        for provider in lock.providers:
            provider.forget()
    _LOCKS.clear()
    _LOCKS_GUARD = threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)


class TableLock:
    """Lock of the table in `storage`; `timeout_ms` is how long entering waits, in milliseconds. `file`: another lock than the table's.
    `instead`: what the table is about to say of its lock, for where it says nothing yet, or what allows for none. `known`: its properties,
    read just now.

    Entering raises `LockTimeoutError`, which names the holder, and `LockError` where the table's file system or its properties allow for
    no lock that the engine can take. In a storage in memory only the threads of this process are excluded.
    """

    def __init__(
        self,
        storage: Storage,
        timeout_ms: int = LOCK_TIMEOUT_MS.default,
        *,
        file: str = LOCK_FILE,
        instead: LockOptions | None = None,
        known: TableConfig | None = None,
    ) -> None:
        self._storage = storage
        self._instead, self._known = instead, known
        self._timeout = timeout_ms / 1000
        self._file = file
        self._path = storage.local_path(file)
        self._key = _key(storage, file)

    @property
    def is_held(self) -> bool:
        """Whether the calling thread holds the lock, through this object or another one."""
        lock = _LOCKS.get(self._key)
        return lock is not None and lock.depth > 0 and lock.owner == threading.get_ident()

    def __enter__(self) -> TableLock:
        check_writable(self._storage)
        deadline = time.monotonic() + self._timeout
        lock, waiting = self._process_lock(), Waiting(self._storage, self._file)
        try:
            self._enter(lock, deadline, waiting)
        finally:
            waiting.over()
        return self

    def _enter(self, lock: _ProcessLock, deadline: float, waiting: Waiting) -> None:
        if not lock.threads.acquire(timeout=min(_MOMENT, max(0.0, self._timeout))):
            if self._timeout > _MOMENT:
                waiting.tell()
            if not lock.threads.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise timed_out(self._storage.root, describe(lock.holder), self._timeout)
        try:
            if lock.depth == 0:
                lock.holder = describe_self()
                self._take(lock, deadline, waiting.tell)
                lock.owner = threading.get_ident()
            lock.depth += 1
        except BaseException:
            lock.threads.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        lock = self._process_lock()
        if lock.depth == 0 or lock.owner != threading.get_ident():
            raise LockError("the table lock is not held by this thread", table=self._storage.root)
        lock.depth -= 1
        try:
            if lock.depth == 0:
                lock.owner, lock.holder = 0, ""
                _give_back(lock)
        finally:
            lock.threads.release()

    def confirm(self) -> bool:
        """Whether the lock, which the caller holds, was held all the time; False where it was lost, and is taken again.

        Raises `LockError` where another program has it now.
        """
        confirmed = [provider.confirm() for provider in self._process_lock().providers]
        return all(confirmed)

    def keep(self) -> None:
        """Keep the lock from expiring; from any thread of the holder."""
        for provider in tuple(self._process_lock().providers):
            provider.keep()

    def _process_lock(self) -> _ProcessLock:
        with _LOCKS_GUARD:
            return _LOCKS.setdefault(self._key, _ProcessLock())

    def _take(self, lock: _ProcessLock, deadline: float, on_wait: Callable[[], None]) -> None:
        """Take the providers' locks, one after the other; on failure, none of them."""
        try:
            if self._path is not None:
                self._check_kept(self._path)
                _acquire(lock, KernelLock(self._storage, self._file, self._path), deadline, on_wait)
            for provider in _shared(self._storage, self._file, self._options):
                _acquire(lock, provider, deadline, on_wait)
        except BaseException:
            _give_back(lock)
            raise

    def _check_kept(self, path: str) -> None:
        if mount_without_flock(path) is not None:
            check_kernel_lock_is_kept(self._storage, path, self._instead or self._options(table_folder(self._file)))

    def _options(self, folder: str) -> LockOptions:
        try:
            return stored_lock_options(self._storage, folder, self._instead) if self._known is None else lock_options(self._known)
        except (LockError, OptionError):
            if self._instead is None:
                raise
            return self._instead


def confirm_lock(storage: Storage) -> bool:
    """As `TableLock.confirm`, of the lock that the calling thread holds; True where it holds none."""
    lock = TableLock(storage)
    return not lock.is_held or lock.confirm()


def _shared(storage: Storage, file: str, options_of: Callable[[str], LockOptions]) -> Iterator[StorageLock | HudiFileLock]:
    """The locks that are kept in the storage itself, and looked at by other programs. `options_of` the table in a folder."""
    is_tables = f"/{file}".endswith(f"/{LOCK_FILE}")
    if not is_tables and not in_object_store(storage):
        return
    folder = table_folder(file)
    options = options_of(folder)
    for found in (storage_lock(storage, file, options), hudi_file_lock(storage, folder, options) if is_tables else None):
        if found is not None:
            yield found


def _acquire(lock: _ProcessLock, provider: LockProvider, deadline: float, on_wait: Callable[[], None]) -> None:
    provider.acquire(deadline, on_wait)
    lock.providers.append(provider)


def _give_back(lock: _ProcessLock) -> None:
    while lock.providers:
        lock.providers.pop().release()


def _key(storage: Storage, file: str) -> str:
    path = storage.local_path(file)
    return os.path.realpath(path) if path else storage.uri(file)  # where the file is, also of a table that is held elsewhere


def lock_holder(storage: Storage, file: str = LOCK_FILE) -> str | None:
    """Who holds a lock of the table in `storage` at this moment, for a message; None where it is free. Neither waits nor changes anything.

    In a storage that is not in the local file system only the threads of this process are known, and the maker of Hudi's lock file.
    """
    found = find_lock_holder(storage, file)
    return None if found is None else str(found)


def find_lock_holder(storage: Storage, file: str = LOCK_FILE) -> Holder | None:
    """As `lock_holder`, in parts."""
    path, known = storage.local_path(file), _LOCKS.get(_key(storage, file))
    if known is not None and known.depth:
        return parse_holder(known.holder)
    holder = None if path is None else kernel_lock_holder(storage, file, path)
    if holder is not None:
        return holder
    holders = (provider.holder() for provider in _shared(storage, file, partial(stored_lock_options, storage)))
    return next((found for found in holders if found is not None), None)
