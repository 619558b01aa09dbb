"""A storage in memory, flat like an object store: a directory exists as long as a file below it does."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator, MutableMapping

import pyarrow as pa

from lakehouse_engine.errors import StoredFileExistsError, StoredFileNotFoundError, UnsafePathError
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.storage.paths import check_relative, is_hidden_name, is_temporary_name

_Files = MutableMapping[str, tuple[bytes, int]]
"""Content and time of modification, by path."""


class MemoryStorage:
    """Holds every file as bytes; thread-safe. For tests. Two with the same `root` share only the name."""

    def __init__(self, root: str = "memory://table") -> None:
        self._root = root.rstrip("/")
        self._files: _Files = {}
        self._guard = threading.RLock()
        self._emptied: set[str] = set()  # folders stay when their last file is deleted, and can be synced

    @property
    def root(self) -> str:
        return self._root

    def uri(self, path: str = "") -> str:
        relative = check_relative(path)
        return f"{self._root}/{relative}" if relative else self._root

    def local_path(self, path: str = "") -> str | None:
        check_relative(path)
        return None

    def below(self, path: str) -> MemoryStorage:
        """Storage rooted at a directory of this one, with the same files."""
        relative = self._file_path(path)
        other = type(self)(self.uri(relative))
        other._files, other._guard = _Below(self._files, f"{relative}/"), self._guard
        return other

    def list(self, path: str = "") -> Listing:
        relative = check_relative(path)
        prefix = f"{relative}/" if relative else ""
        children: dict[str, StoredFile] = {}
        with self._guard:
            for name, (data, modified) in self._files.items():
                if not name.startswith(prefix):
                    continue
                child, _, rest = name[len(prefix) :].partition("/")
                if rest:
                    children.setdefault(child, StoredFile(prefix + child, 0, modified, is_directory=True))
                elif not is_hidden_name(child):
                    children[child] = StoredFile(name, len(data), modified)
        return sorted(children.values(), key=lambda entry: entry.path)

    def walk(self, path: str = "") -> Listing:
        relative = check_relative(path)
        prefix = f"{relative}/" if relative else ""
        with self._guard:
            found = [StoredFile(name, len(data), modified) for name, (data, modified) in self._files.items() if name.startswith(prefix)]
        return sorted((file for file in found if not is_hidden_name(file.name)), key=lambda file: file.path)

    def unpublished(self, path: str = "") -> Listing:
        relative = check_relative(path)
        prefix = f"{relative}/" if relative else ""
        with self._guard:
            found = [StoredFile(name, len(data), modified) for name, (data, modified) in self._files.items() if name.startswith(prefix)]
        direct = (file for file in found if file.path == prefix + file.name)
        return sorted((file for file in direct if is_temporary_name(file.name)), key=lambda file: file.path)

    def head(self, path: str) -> StoredFile | None:
        relative = check_relative(path)
        with self._guard:
            if relative in self._files:
                data, modified = self._files[relative]
                return StoredFile(relative, len(data), modified)
            below = [modified for name, (_, modified) in self._files.items() if name.startswith(f"{relative}/" if relative else "")]
        return StoredFile(relative, 0, max(below), is_directory=True) if below else None

    def read(self, path: str) -> bytes:
        relative = check_relative(path)
        with self._guard:
            if relative not in self._files:
                raise StoredFileNotFoundError(f"cannot read {path!r}: it is not there", path=path, root=self._root)
            return self._files[relative][0]

    def create(self, path: str, data: bytes) -> None:
        relative = self._file_path(path)
        with self._guard:
            if relative in self._files:
                raise StoredFileExistsError(f"cannot create {path!r}: it is there already", path=path, root=self._root)
            self._put(relative, data)

    def overwrite(self, path: str, data: bytes) -> None:
        relative = self._file_path(path)
        with self._guard:
            self._put(relative, data)

    def delete(self, path: str) -> bool:
        relative = self._file_path(path)
        with self._guard:
            self._emptied.add(relative.rpartition("/")[0])
            return self._files.pop(relative, None) is not None

    def delete_tree(self, path: str) -> None:
        relative = self._file_path(path)
        with self._guard:
            for name in [name for name in self._files if name == relative or name.startswith(f"{relative}/")]:
                del self._files[name]

    def delete_empty(self, path: str) -> bool:
        relative = self._file_path(path)
        with self._guard:
            if relative in self._files or self.walk(relative):
                return False
            self.delete_tree(relative)
        return True

    def rename_tree(self, source: str, target: str) -> None:
        before, after = self._file_path(source), self._file_path(target)
        with self._guard:
            if self.head(before) is None:
                raise StoredFileNotFoundError(f"cannot rename {source!r}: it is not there", path=source, root=self._root)
            if self.head(after) is not None:
                raise StoredFileExistsError(f"cannot rename {source!r} to {target!r}: it is there already", path=target, root=self._root)
            for name in [name for name in self._files if name == before or name.startswith(f"{before}/")]:
                self._files[after + name[len(before) :]] = self._files.pop(name)

    def exchange_trees(self, first: str, second: str) -> None:
        one, other = self._file_path(first), self._file_path(second)
        with self._guard:
            for path in (one, other):
                if self.head(path) is None:
                    message = f"cannot exchange {first!r} and {second!r}: {path!r} is not there"
                    raise StoredFileNotFoundError(message, path=path, root=self._root)
            kept = {name: self._files.pop(name) for name in list(self._files) if name.startswith((f"{one}/", f"{other}/"))}
            for name, content in kept.items():
                before, after = (one, other) if name.startswith(f"{one}/") else (other, one)
                self._files[after + name[len(before) :]] = content

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.read(path))

    def open_output(self, path: str) -> pa.NativeFile:
        relative = self._file_path(path)
        with self._guard:
            self._put(relative, b"")
        return pa.PythonFile(_Output(self, relative), mode="w")

    def link(self, path: str, original: str) -> bool:
        self._file_path(path)
        return False

    def sync(self, path: str) -> None:
        if self.head(path) is None and check_relative(path) not in self._emptied:
            raise StoredFileNotFoundError(f"cannot make {path!r} durable: it is not there", path=path, root=self._root)

    def _file_path(self, path: str) -> str:
        relative = check_relative(path)
        if not relative:
            raise UnsafePathError("the root of a storage is no file", root=self._root)
        return relative

    def _put(self, relative: str, data: bytes) -> None:
        before = self._files.get(relative)
        # New content gets a new time even within a millisecond: versions of files of one size differ only in that.
        modified = max(time.time_ns() // 1_000_000, 0 if before is None else before[1] + 1)
        self._files[relative] = (bytes(data), modified)


class _Below(MutableMapping[str, tuple[bytes, int]]):
    """Files below a directory, by relative path."""

    def __init__(self, files: _Files, prefix: str) -> None:
        self._inner, self._prefix = files, prefix

    def __getitem__(self, name: str) -> tuple[bytes, int]:
        return self._inner[self._prefix + name]

    def __setitem__(self, name: str, file: tuple[bytes, int]) -> None:
        self._inner[self._prefix + name] = file

    def __delitem__(self, name: str) -> None:
        del self._inner[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in list(self._inner) if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Output(io.BytesIO):
    """Stores its content when it is closed."""

    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage = storage
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._storage.overwrite(self._path, self.getvalue())
        super().close()
