"""A warehouse in which some tables are read from another, hidden directory.

Readers of the warehouse's own storage do not see them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from lakehouse_engine.errors import UnsafePathError
from lakehouse_engine.storage.base import Listing, Storage, StoredFile, Tag, TaggedStorage
from lakehouse_engine.storage.paths import check_relative

_SUFFIX = "__dbt_tmp"
"""A table that will replace one takes that one's place here."""
_BESIDE = (".views", ".docs")


def check_hidden(folder: str) -> str:
    """A folder of a warehouse that no listing shows. Raises `UnsafePathError` for any other."""
    relative = check_relative(folder)
    if not relative.startswith("."):
        raise UnsafePathError(f"{folder[:200]!r} is no hidden folder: what is held back would be seen there; give one that begins with '.'")
    return relative


@dataclass(frozen=True, slots=True)
class OverlaidStorage:
    """`inner` is rooted at the warehouse; files of the tables `names` (`schema.table`, in lower case) are below its `folder`.

    `names` is asked each time, so a table can join while others read.
    """

    inner: Storage
    folder: str
    names: Container[str]

    @property
    def root(self) -> str:
        return self.inner.root

    def uri(self, path: str = "") -> str:
        return self.inner.uri(self._there(path))

    def local_path(self, path: str = "") -> str | None:
        return self.inner.local_path(self._there(path))

    def list(self, path: str = "") -> Listing:
        relative = check_relative(path)
        if self._there(relative) != relative:
            return self._shown(self.inner.list(self._there(relative)))
        found = {entry.path: entry for entry in self.inner.list(relative) if not self._is_over(entry.path)}
        above = self._shown(self.inner.list(self._below(relative)))
        found.update((entry.path, entry) for entry in above if self._is_over(entry.path) or entry.path not in found)
        return sorted(found.values(), key=lambda entry: entry.path)

    def walk(self, path: str = "") -> Listing:
        relative = check_relative(path)
        if self._there(relative) != relative:
            return self._shown(self.inner.walk(self._there(relative)))
        own = [entry for entry in self.inner.walk(relative) if not self._is_over(entry.path)]
        above = [entry for entry in self._shown(self.inner.walk(self._below(relative))) if self._is_over(entry.path)]
        return sorted([*own, *above], key=lambda entry: entry.path)

    def unpublished(self, path: str = "") -> Listing:
        return self._shown(self.inner.unpublished(self._there(path)))

    def head(self, path: str) -> StoredFile | None:
        found = self.inner.head(self._there(path))
        return replace(found, path=check_relative(path)) if found is not None else None

    def read(self, path: str) -> bytes:
        return self.inner.read(self._there(path))

    def create(self, path: str, data: bytes) -> None:
        self.inner.create(self._there(path), data)

    def overwrite(self, path: str, data: bytes) -> None:
        self.inner.overwrite(self._there(path), data)

    def link(self, path: str, original: str) -> bool:
        return self.inner.link(self._there(path), original)

    def delete(self, path: str) -> bool:
        return self.inner.delete(self._there(path))

    def delete_tree(self, path: str) -> None:
        self.inner.delete_tree(self._there(path))

    def delete_empty(self, path: str) -> bool:
        return self.inner.delete_empty(self._there(path))

    def rename_tree(self, source: str, target: str) -> None:
        self.inner.rename_tree(self._there(source), self._there(target))

    def exchange_trees(self, first: str, second: str) -> None:
        self.inner.exchange_trees(self._there(first), self._there(second))

    def open_input(self, path: str) -> pa.NativeFile:
        return self.inner.open_input(self._there(path))

    def open_output(self, path: str) -> pa.NativeFile:
        return self.inner.open_output(self._there(path))

    def sync(self, path: str) -> None:
        self.inner.sync(self._there(path))

    # methods of object stores

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        return self._tagged.read_tagged(self._there(path))

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        return self._tagged.put_tagged(self._there(path), data, tag)

    def has_object(self, path: str) -> bool:
        return self._tagged.has_object(self._there(path))

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        found = self.walk(path)
        return None if len(found) > most else found

    def delete_all(self, paths: Iterable[str]) -> None:
        self._tagged.delete_all([self._there(path) for path in paths])

    def copy_object(self, path: str, original: str) -> bool:
        return self._tagged.copy_object(self._there(path), original)

    @property
    def _tagged(self) -> TaggedStorage:
        return cast("TaggedStorage", self.inner)

    def _there(self, path: str) -> str:
        relative = check_relative(path)
        return self._below(relative) if self._is_over(relative) else relative

    def _below(self, relative: str) -> str:
        return f"{self.folder}/{relative}" if relative else self.folder

    def _shown(self, entries: Listing) -> Listing:
        """Entries of the other directory under the visible names."""
        return [replace(entry, path=entry.path.removeprefix(f"{self.folder}/")) for entry in entries]

    def _is_over(self, relative: str) -> bool:
        """True if it is in a table's directory `schema/table`, or belongs to the table by name: its comments, or a view in its place."""
        schema, _, rest = relative.partition("/")
        name, _, file = rest.partition("/")
        if name in _BESIDE:
            name = file.removesuffix(".json")
        return bool(name) and f"{schema}.{name.removesuffix(_SUFFIX)}".lower() in self.names
