"""A storage that fails on request: crash tests run an action once for each of its mutating calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, cast

import pyarrow as pa

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.base import Listing, Storage, StoredFile, Tag, TaggedStorage
from lakehouse_engine.storage.nested import NestedStorage

Answer = TypeVar("Answer")


class SimulatedCrash(BaseException):
    """The process dies here. Not an `Exception`, so that no cleanup in the code under test catches it."""


class Fault(StrEnum):
    """What happens at the chosen call."""

    CRASH_BEFORE = "crash before"
    """The call has no effect and the process dies."""
    CRASH_AFTER = "crash after"
    """The call takes effect and the process dies."""
    LOST_ACK = "lost acknowledgement"
    """The call takes effect, raises `StorageError`, and the process goes on."""
    TRANSIENT = "transient"
    """The call has no effect and raises `StorageError`; later ones work."""
    PERSISTENT = "persistent"
    """This call and every later mutation have no effect and raise `StorageError`."""


@dataclass(slots=True)
class _Plan:
    call: int
    fault: Fault


class FaultyStorage:
    """Passes calls to `inner` and applies the fault to the n-th mutating call, counted from 1.

    Mutating calls are create, overwrite, delete, delete_tree, delete_empty, rename_tree, exchange_trees, link and open_output; in an object
    store also put_tagged, copy_object and delete_all. `mutations` lists them ("create .hoodie/..."), so a run without a fault enumerates
    the points. After a simulated crash every call raises `SimulatedCrash`; recovery uses a new object over the same `inner`.
    """

    def __init__(self, inner: Storage, call: int = 0, fault: Fault = Fault.CRASH_BEFORE) -> None:
        self._inner = inner
        self._plan = _Plan(call, fault)
        self._crashed = False
        self.mutations: list[str] = []

    @property
    def root(self) -> str:
        return self._inner.root

    def below(self, path: str) -> NestedStorage:
        return NestedStorage(self, path)

    def uri(self, path: str = "") -> str:
        return self._inner.uri(path)

    def local_path(self, path: str = "") -> str | None:
        return self._inner.local_path(path)

    def list(self, path: str = "") -> Listing:
        self._alive()
        return self._inner.list(path)

    def walk(self, path: str = "") -> Listing:
        self._alive()
        return self._inner.walk(path)

    def unpublished(self, path: str = "") -> Listing:
        self._alive()
        return self._inner.unpublished(path)

    def head(self, path: str) -> StoredFile | None:
        self._alive()
        return self._inner.head(path)

    def read(self, path: str) -> bytes:
        self._alive()
        return self._inner.read(path)

    def open_input(self, path: str) -> pa.NativeFile:
        self._alive()
        return self._inner.open_input(path)

    def sync(self, path: str) -> None:
        self._alive()
        self._inner.sync(path)

    def create(self, path: str, data: bytes) -> None:
        self._mutate(f"create {path}", lambda: self._inner.create(path, data))

    def overwrite(self, path: str, data: bytes) -> None:
        self._mutate(f"overwrite {path}", lambda: self._inner.overwrite(path, data))

    def delete(self, path: str) -> bool:
        return self._mutate(f"delete {path}", lambda: self._inner.delete(path))

    def delete_tree(self, path: str) -> None:
        self._mutate(f"delete_tree {path}", lambda: self._inner.delete_tree(path))

    def delete_empty(self, path: str) -> bool:
        return self._mutate(f"delete_empty {path}", lambda: self._inner.delete_empty(path))

    def rename_tree(self, source: str, target: str) -> None:
        self._mutate(f"rename_tree {source} {target}", lambda: self._inner.rename_tree(source, target))

    def exchange_trees(self, first: str, second: str) -> None:
        self._mutate(f"exchange_trees {first} {second}", lambda: self._inner.exchange_trees(first, second))

    def open_output(self, path: str) -> pa.NativeFile:
        self._before(f"open_output {path}")
        output = self._inner.open_output(path)
        try:
            self._after()
        except BaseException:
            output.close()
            raise
        return output

    def link(self, path: str, original: str) -> bool:
        return self._mutate(f"link {path}", lambda: self._inner.link(path, original))

    # additional methods of object stores

    def has_object(self, path: str) -> bool:
        self._alive()
        return self._tagged.has_object(path)

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        self._alive()
        return self._tagged.walk_up_to(path, most)

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        self._alive()
        return self._tagged.read_tagged(path)

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        return self._mutate(f"put_tagged {path}", lambda: self._tagged.put_tagged(path, data, tag))

    def copy_object(self, path: str, original: str) -> bool:
        return self._mutate(f"copy_object {path}", lambda: self._tagged.copy_object(path, original))

    def delete_all(self, paths: Iterable[str]) -> None:
        named = list(paths)
        self._mutate(f"delete_all {' '.join(named)}", lambda: self._tagged.delete_all(named))

    @property
    def _tagged(self) -> TaggedStorage:
        return cast(TaggedStorage, self._inner)

    def _mutate(self, mutation: str, call: Callable[[], Answer]) -> Answer:
        self._before(mutation)
        try:
            return call()
        finally:
            # Also for a refused call: a process can die after that as well.
            self._after()

    def _alive(self) -> None:
        if self._crashed:
            raise SimulatedCrash("this storage belongs to a process that died")

    def _before(self, mutation: str) -> None:
        self._alive()
        self.mutations.append(mutation)
        number, plan = len(self.mutations), self._plan
        if number == plan.call and plan.fault is Fault.CRASH_BEFORE:
            self._crash()
        if (number == plan.call and plan.fault is Fault.TRANSIENT) or (number >= plan.call > 0 and plan.fault is Fault.PERSISTENT):
            raise StorageError(f"simulated failure of '{mutation}'", root=self.root)

    def _after(self) -> None:
        if len(self.mutations) != self._plan.call:
            return
        if self._plan.fault is Fault.CRASH_AFTER:
            self._crash()
        if self._plan.fault is Fault.LOST_ACK:
            raise StorageError(f"simulated loss of the answer to '{self.mutations[-1]}'", root=self.root)

    def _crash(self) -> None:
        self._crashed = True
        raise SimulatedCrash(f"simulated crash at mutation {self._plan.call}: {self.mutations[-1]}")
