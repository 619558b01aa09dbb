"""A storage rooted at a directory of another one, for storages without locations: each call goes to the outer one, with the whole path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from lakehouse_engine.storage.base import Listing, Storage, StoredFile, Tag, TaggedStorage


@dataclass(frozen=True, slots=True)
class NestedStorage:
    """The directory `folder` of `outer`."""

    outer: Storage
    folder: str

    @property
    def root(self) -> str:
        return f"{self.outer.root}/{self.folder}"

    def below(self, path: str) -> NestedStorage:
        return NestedStorage(self.outer, self._whole(path))

    def uri(self, path: str = "") -> str:
        return self.outer.uri(self._whole(path))

    def local_path(self, path: str = "") -> str | None:
        return self.outer.local_path(self._whole(path))

    def list(self, path: str = "") -> Listing:
        return self._shown(self.outer.list(self._whole(path)))

    def walk(self, path: str = "") -> Listing:
        return self._shown(self.outer.walk(self._whole(path)))

    def unpublished(self, path: str = "") -> Listing:
        return self._shown(self.outer.unpublished(self._whole(path)))

    def head(self, path: str) -> StoredFile | None:
        found = self.outer.head(self._whole(path))
        return None if found is None else self._shown([found])[0]

    def read(self, path: str) -> bytes:
        return self.outer.read(self._whole(path))

    def create(self, path: str, data: bytes) -> None:
        self.outer.create(self._whole(path), data)

    def overwrite(self, path: str, data: bytes) -> None:
        self.outer.overwrite(self._whole(path), data)

    def delete(self, path: str) -> bool:
        return self.outer.delete(self._whole(path))

    def delete_tree(self, path: str) -> None:
        self.outer.delete_tree(self._whole(path))

    def delete_empty(self, path: str) -> bool:
        return self.outer.delete_empty(self._whole(path))

    def rename_tree(self, source: str, target: str) -> None:
        self.outer.rename_tree(self._whole(source), self._whole(target))

    def exchange_trees(self, first: str, second: str) -> None:
        self.outer.exchange_trees(self._whole(first), self._whole(second))

    def open_input(self, path: str) -> pa.NativeFile:
        return self.outer.open_input(self._whole(path))

    def open_output(self, path: str) -> pa.NativeFile:
        return self.outer.open_output(self._whole(path))

    def link(self, path: str, original: str) -> bool:
        return self.outer.link(self._whole(path), original)

    def sync(self, path: str) -> None:
        self.outer.sync(self._whole(path))

    # additional methods of object stores

    def has_object(self, path: str) -> bool:
        return self._tagged.has_object(self._whole(path))

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        found = self._tagged.walk_up_to(self._whole(path), most)
        return None if found is None else self._shown(found)

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        return self._tagged.read_tagged(self._whole(path))

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        return self._tagged.put_tagged(self._whole(path), data, tag)

    def copy_object(self, path: str, original: str) -> bool:
        return self._tagged.copy_object(self._whole(path), original)

    def delete_all(self, paths: Iterable[str]) -> None:
        self._tagged.delete_all([self._whole(path) for path in paths])

    @property
    def _tagged(self) -> TaggedStorage:
        return cast(TaggedStorage, self.outer)

    def _whole(self, path: str) -> str:
        return f"{self.folder}/{path}" if path else self.folder

    def _shown(self, entries: Listing) -> Listing:
        start = len(self.folder) + 1
        return [replace(entry, path=entry.path[start:]) for entry in entries]
