"""A bucket in memory that meets the n-th request of a process as stores and networks do: not at all, late, twice, without an answer.

It stands where the engine calls `obstore`, over obstore's own `MemoryStore`, which keeps create-if-absent and update-by-tag. What the
client of obstore repeats by itself is done when a call fails here. The last request of an upload in parts can be carried out once, as on
S3: made again, it finds no such upload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

import obstore
import pytest
from obstore.exceptions import BaseError, GenericError, NotFoundError
from obstore.store import MemoryStore

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.compat import StrEnum
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import SimulatedCrash
from lakehouse_engine.storage.objects import delete as object_delete
from lakehouse_engine.storage.objects import files as object_files
from lakehouse_engine.storage.objects import put as object_put
from lakehouse_engine.storage.objects import store as object_store
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.locks.storage_lock import StorageLock

Answer = TypeVar("Answer")
ROOT = "lake/table/"
"""What keys of the table begin with."""
PART = 2048
"""Bytes of a part of an upload: base files are sent in parts, log files whole."""
_LOST = (
    "Server returned non-2xx status code: 503 Service Unavailable: ",
    "Server returned non-2xx status code: 500 Internal Server Error: ",
    "HTTP error: error sending request: operation timed out",
)


class Meet(StrEnum):
    """What the chosen request meets."""

    DIES_BEFORE = "the process dies before"
    DIES_AFTER = "the process dies after"
    DIES_LATE = "the process dies, and it is done late"
    LOST = "lost"
    REFUSED = "lost, as all that are made for it"
    """So are those that repeat it: all of its kind and key."""
    UNREACHABLE = "lost, as all after it"
    ANSWER_LOST = "done without an answer"
    ANSWERS_LOST = "done, and nobody may look"
    """Every later request for its key fails."""
    CUT_OFF = "done without an answer, and all after it are lost"
    REPEATED = "done twice"
    DELAYED = "not answered, and done late"
    ABANDONED = "not answered, as all that are made for it, and done late"


class Moment(StrEnum):
    """When what is late arrives."""

    NEXT = "after the next request"
    NEXT_CHANGE = "after the next one that changes something"
    END = "when the action has ended"
    LATER = "when the next write is committed"


_LATE = (Meet.DIES_LATE, Meet.REPEATED, Meet.DELAYED, Meet.ABANDONED)
_DIES = (Meet.DIES_BEFORE, Meet.DIES_AFTER, Meet.DIES_LATE)
_UNDONE = (Meet.DIES_BEFORE, Meet.DIES_LATE, Meet.LOST, Meet.REFUSED, Meet.UNREACHABLE, Meet.DELAYED, Meet.ABANDONED)
_FOR_ALL_LIKE_IT = (Meet.REFUSED, Meet.ABANDONED)
_FOR_ALL = (Meet.UNREACHABLE, Meet.CUT_OFF)


@dataclass(frozen=True)
class Fault:
    """`moment` is of those that arrive late."""

    meet: Meet
    moment: Moment | None = None

    def __str__(self) -> str:
        return f"{self.meet}" + (f" ({self.moment})" if self.moment else "")


def _faults() -> Iterator[Fault]:
    for meet in Meet:
        if meet not in _LATE:
            yield Fault(meet)
        elif meet is Meet.DIES_LATE:
            # Done at once after it died is what dying after it leaves.
            yield Fault(meet, Moment.LATER)
        else:
            yield from (Fault(meet, moment) for moment in Moment)


FAULTS = tuple(_faults())


@dataclass
class Request:
    """`what` is the verb and the key; `send` carries it out."""

    what: str
    key: str
    send: Callable[[], Any]


@dataclass
class Process:
    """What one process asks of a bucket, and what it meets: `fault` at its request number `call` among those that change something.

    `changes` names those so far. `late` is what is still under way.
    """

    store: MemoryStore
    call: int = 0
    fault: Fault | None = None
    changes: list[str] = field(default_factory=list)
    late: list[Request] = field(default_factory=list)
    _met: Request | None = None
    _dead: bool = False

    def ask(self, what: str, key: str, send: Callable[[], Answer], *, changes: bool = False) -> Answer:
        if self._dead:
            raise SimulatedCrash("the process is dead")
        request = Request(what, key, send)
        if changes:
            self.changes.append(what)
            if len(self.changes) == self.call and self.fault is not None:
                return self._meet(request, self.fault.meet)
        if self._met is not None and self.fault is not None and self._is_lost_too(request, self.fault.meet, changes):
            raise self._error()
        try:
            return send()
        finally:
            # Also where the store refuses it.
            self._arrive(Moment.NEXT)
            if changes:
                self._arrive(Moment.NEXT_CHANGE)

    def arrive(self) -> list[str]:
        """What is under way arrives; what the store says of it goes nowhere."""
        late, self.late = self.late, []
        for request in late:
            with suppress(BaseError, OSError):
                request.send()
        return [request.what for request in late]

    def _arrive(self, moment: Moment) -> None:
        if self.late and self.fault is not None and self.fault.moment is moment:
            self.arrive()

    def _meet(self, request: Request, meet: Meet) -> Any:
        self._met = request
        answer = None if meet in _UNDONE else request.send()
        if meet in _LATE:
            self.late.append(request)
        if meet is Meet.REPEATED:
            return answer
        if meet in _DIES:
            self._dead = True
            raise SimulatedCrash(f"died at {request.what}")
        raise self._error()

    def _is_lost_too(self, request: Request, meet: Meet, changes: bool) -> bool:
        assert self._met is not None
        like_it = changes and request.what == self._met.what
        return meet in _FOR_ALL or (meet in _FOR_ALL_LIKE_IT and like_it) or (meet is Meet.ANSWERS_LOST and request.key == self._met.key)

    def _error(self) -> GenericError:
        """Each of the ways in turn, so that every kind of request meets all of them somewhere."""
        return GenericError(_LOST[self.call % len(_LOST)])


class Upload:
    """As the writer of `obstore.open_writer`: whole in one request where it is small, else in parts, and there with the last request."""

    def __init__(self, process: Process, key: str, buffer_size: int, attributes: Any) -> None:
        self._process, self._key, self._size, self._attributes = process, key, buffer_size, attributes
        self._content = bytearray()
        self._open = True

    def write(self, data: bytes) -> None:
        self._content += data

    def close(self) -> None:
        content = bytes(self._content)

        def put() -> None:
            obstore.put(self._process.store, self._key, content, attributes=self._attributes, use_multipart=False)

        def complete() -> None:
            if not self._open:
                raise NotFoundError(f"Server returned non-2xx status code: 404 Not Found: NoSuchUpload {self._key}")
            put()
            self._open = False

        if len(content) < self._size:
            self._process.ask(f"put {self._key}", self._key, put, changes=True)
            return
        self._process.ask(f"part {self._key}", self._key, lambda: None, changes=True)
        self._process.ask(f"complete {self._key}", self._key, complete, changes=True)

    def __exit__(self, *error: object) -> None:
        self._open = False


class Facade:
    """What the engine's modules call `obstore`."""

    @staticmethod
    def put(store: Process, path: str, data: bytes, **named: Any) -> Any:
        return store.ask(f"put {path}", path, lambda: obstore.put(store.store, path, data, **named), changes=True)

    @staticmethod
    def delete(store: Process, paths: str | Sequence[str]) -> None:
        keys = [paths] if isinstance(paths, str) else list(paths)
        store.ask(f"delete {' '.join(keys)}", keys[0], lambda: obstore.delete(store.store, keys), changes=True)

    @staticmethod
    def copy(store: Process, source: str, target: str) -> None:
        store.ask(f"copy {target}", target, lambda: obstore.copy(store.store, source, target), changes=True)

    @staticmethod
    def open_writer(store: Process, path: str, *, buffer_size: int, attributes: Any = None) -> Upload:
        return Upload(store, path, buffer_size, attributes)

    @staticmethod
    def get(store: Process, path: str, **named: Any) -> Any:
        return store.ask(f"get {path}", path, lambda: obstore.get(store.store, path, **named))

    @staticmethod
    def get_range(store: Process, path: str, **named: Any) -> Any:
        return store.ask(f"get {path}", path, lambda: obstore.get_range(store.store, path, **named))

    @staticmethod
    def head(store: Process, path: str) -> Any:
        return store.ask(f"head {path}", path, lambda: obstore.head(store.store, path))

    @staticmethod
    def list(store: Process, **named: Any) -> Any:
        return store.ask(f"list {named['prefix']}", "", lambda: [*obstore.list(store.store, **named)])

    @staticmethod
    def list_with_delimiter(store: Process, **named: Any) -> Any:
        return store.ask(f"list {named['prefix']}", "", lambda: obstore.list_with_delimiter(store.store, **named))


class Bucket:
    """A bucket of its own, and a table in it. `process` gives its storage as another process has it, which remembers nothing."""

    _numbers = count(1)

    def __init__(self, files: Storage | None = None) -> None:
        self.location = f"s3://bucket-{next(self._numbers)}"
        self.store = MemoryStore()
        for entry in () if files is None else files.walk():
            obstore.put(self.store, f"{ROOT}{entry.path}", files.read(entry.path))

    def process(self, process: Process | None = None) -> ObjectStorage:
        options = (("process", str(next(self._numbers))),)
        object_store._stores[self.location, options] = process or Process(self.store)
        return ObjectStorage(f"{self.location}/{ROOT}".rstrip("/"), options)

    @property
    def storage(self) -> ObjectStorage:
        return self.process()


def _no_client(*arguments: Any, **named: Any) -> Any:
    raise AssertionError(f"a client of its own is opened: {arguments}")


@contextmanager
def buckets() -> Iterator[None]:
    """Meanwhile the engine finds `Bucket`s, and waits for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (object_delete, object_files, object_put, object_store):
            patch.setattr(module, "obstore", Facade)
        patch.setattr(object_store, "_stores", {})
        patch.setattr(object_store, "_from_url", _no_client)
        patch.setattr(object_put, "_KNOWN", BoundedCache(4096))
        patch.setattr(object_put, "_PAUSES", (0.0,) * len(object_put._PAUSES))
        patch.setattr(object_files, "_PART", PART)
        # Who dies here leaves this thread behind: it would go on in other tests. No test lasts as long as a lock counts.
        patch.setattr(StorageLock, "_renew", lambda *_: None)
        yield
