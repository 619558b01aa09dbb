"""The storage of a run: in memory, by the time of the run, and each call of an actor a turn of its own."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.storage.memory import MemoryStorage
from tests.explorer.footprint import Footprint, ancestors, of_change, of_file, of_listing, of_walk
from tests.explorer.turns import HERE, Turns

Answer = TypeVar("Answer")
Watch = Callable[[str, str], None]
"""Told of each change, by verb and path, once it is made."""


class Disk(MemoryStorage):
    """What all actors share. Times of modification are those of the world (`time.time` is)."""

    def copy(self, root: str) -> Disk:
        other = Disk(root)
        other._files = dict(self._files)
        return other

    def without(self, path: str) -> Disk:
        """All but one file; the same where it is not there."""
        if path not in self._files:
            return self
        other = self.copy(self.root)
        del other._files[path]
        return other

    def names(self, path: str) -> list[str]:
        """The file of that path, or all below it."""
        return [name for name in self._files if name == path or name.startswith(f"{path}/")]

    def folders(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that are folders."""
        return {path for path in paths if any(name.startswith(f"{path}/") for name in self._files)}

    def content(self) -> dict[str, bytes]:
        return {name: data for name, (data, _) in self._files.items()}

    def _put(self, relative: str, data: bytes) -> None:
        self._files[relative] = (bytes(data), int(time.time() * 1000))


class Turned:
    """The disk, or what is below a folder of it, as one actor uses it."""

    def __init__(self, disk: Disk, watch: Watch, folder: str = "") -> None:
        self.disk, self._watch, self._folder = disk, watch, folder

    def below(self, path: str) -> Turned:
        return Turned(self.disk, self._watch, self._full(path))

    @property
    def root(self) -> str:
        return self.disk.uri(self._folder)

    def uri(self, path: str = "") -> str:
        return self.disk.uri(self._full(path))

    def local_path(self, path: str = "") -> str | None:
        return None

    def list(self, path: str = "") -> Listing:
        return self._shown(self._look("list", path, of_listing, self.disk.list))

    def walk(self, path: str = "") -> Listing:
        return self._shown(self._look("walk", path, of_walk, self.disk.walk))

    def unpublished(self, path: str = "") -> Listing:
        return self._shown(self._look("unpublished", path, of_listing, self.disk.unpublished))

    def head(self, path: str) -> StoredFile | None:
        found = self._look("head", path, of_file, self.disk.head)
        return None if found is None else self._shown([found])[0]

    def read(self, path: str) -> bytes:
        return self._look("read", path, of_file, self.disk.read)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._look("open_input", path, of_file, self.disk.open_input)

    def sync(self, path: str) -> None:
        """Nothing that others see."""

    def create(self, path: str, data: bytes) -> None:
        self._change("create", path, lambda full: (full,), lambda full: self.disk.create(full, data))

    def overwrite(self, path: str, data: bytes) -> None:
        self._change("overwrite", path, lambda full: (full,), lambda full: self.disk.overwrite(full, data))

    def link(self, path: str, original: str) -> bool:
        raise NotImplementedError("no actor copies a table")

    def delete(self, path: str) -> bool:
        return self._change("delete", path, lambda full: (full,), self.disk.delete)

    def delete_tree(self, path: str) -> None:
        self._change("delete_tree", path, self.disk.names, self.disk.delete_tree)

    def delete_empty(self, path: str) -> bool:
        return self._change("delete_empty", path, self.disk.names, self.disk.delete_empty)

    def rename_tree(self, source: str, target: str) -> None:
        to = self._full(target)
        self._change("rename_tree", source, lambda full: self._moved(full, to), lambda full: self.disk.rename_tree(full, to))

    def exchange_trees(self, first: str, second: str) -> None:
        to = self._full(second)
        self._change(
            "exchange_trees",
            first,
            lambda full: (*self._moved(full, to), *self._moved(to, full)),
            lambda full: self.disk.exchange_trees(full, to),
        )

    def open_output(self, path: str) -> pa.NativeFile:
        self._change("open_output", path, lambda full: (full,), lambda full: self.disk.overwrite(full, b""))
        return pa.PythonFile(_Output(self, path), mode="w")

    def _full(self, path: str) -> str:
        return "/".join(part for part in (self._folder, path) if part)

    def _shown(self, found: Listing) -> Listing:
        return [replace(entry, path=entry.path.removeprefix(f"{self._folder}/")) for entry in found] if self._folder else found

    def _moved(self, source: str, target: str) -> tuple[str, ...]:
        """The files below `source`, by both names."""
        names = self.disk.names(source)
        return (*names, *(target + name.removeprefix(source) for name in names))

    def _look(self, verb: str, path: str, footprint: Callable[[str], Footprint], look: Callable[[str], Answer]) -> Answer:
        full = self._full(path)
        _turns().step(verb, full, footprint(full))
        return look(full)

    def _change(self, verb: str, path: str, touched: Callable[[str], Iterable[str]], change: Callable[[str], Answer]) -> Answer:
        turns, actor, path = _turns(), HERE.actor, self._full(path)
        assert actor is not None
        made = turns.step(verb, path, Footprint(), mutates=True)
        files = tuple(touched(path))
        above = {folder for name in files for folder in ancestors(name) if folder}
        before, there = self.disk.folders(above), bool(self.disk.names(path))
        try:
            answer = change(path)
        finally:
            after = self.disk.folders(above)
            changed = of_change(files, before ^ after)
            made.footprint = Footprint(of_file(path).reads, changed.writes if there or bool(self.disk.names(path)) else frozenset())
            lost, actor.lost = actor.lost, False
        self._watch(verb, path)
        if lost:
            raise StorageError(f"simulated loss of the answer to {verb} {path}", path=path)
        return answer


def _turns() -> Turns:
    turns = HERE.turns
    assert turns is not None, "a storage of an actor is used by another thread"
    return turns


class _Output(io.BytesIO):
    """Stores its content when it is closed by who opened it, in a turn of its own; what nobody closed stays empty."""

    def __init__(self, storage: Turned, path: str) -> None:
        super().__init__()
        self._storage, self._path, self._actor = storage, path, HERE.actor

    def close(self) -> None:
        if not self.closed:
            try:
                if HERE.actor is self._actor:
                    self._storage.overwrite(self._path, self.getvalue())
            finally:
                super().close()
