"""Read-only storage for an attached warehouse; changes are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn, cast

import pyarrow as pa

from lakehouse_engine.errors import ReadOnlyError
from lakehouse_engine.storage.base import Listing, Storage, StoredFile, Tag, TaggedStorage


@dataclass(frozen=True, slots=True)
class ReadOnlyStorage:
    """Passes reads to `inner` and refuses changes. `name` is the catalog's, for messages."""

    inner: Storage
    name: str

    @property
    def root(self) -> str:
        return self.inner.root

    def uri(self, path: str = "") -> str:
        return self.inner.uri(path)

    def local_path(self, path: str = "") -> str | None:
        return self.inner.local_path(path)

    def list(self, path: str = "") -> Listing:
        return self.inner.list(path)

    def walk(self, path: str = "") -> Listing:
        return self.inner.walk(path)

    def unpublished(self, path: str = "") -> Listing:
        return self.inner.unpublished(path)

    def head(self, path: str) -> StoredFile | None:
        return self.inner.head(path)

    def read(self, path: str) -> bytes:
        return self.inner.read(path)

    def open_input(self, path: str) -> pa.NativeFile:
        return self.inner.open_input(path)

    # methods of object stores

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        return cast("TaggedStorage", self.inner).read_tagged(path)

    def has_object(self, path: str) -> bool:
        return cast("TaggedStorage", self.inner).has_object(path)

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        return cast("TaggedStorage", self.inner).walk_up_to(path, most)

    # changes

    def create(self, path: str, data: bytes) -> NoReturn:
        self.refuse(path)

    def overwrite(self, path: str, data: bytes) -> NoReturn:
        self.refuse(path)

    def link(self, path: str, original: str) -> NoReturn:
        self.refuse(path)

    def delete(self, path: str) -> NoReturn:
        self.refuse(path)

    def delete_tree(self, path: str) -> NoReturn:
        self.refuse(path)

    def delete_empty(self, path: str) -> NoReturn:
        self.refuse(path)

    def rename_tree(self, source: str, target: str) -> NoReturn:
        self.refuse(source)

    def exchange_trees(self, first: str, second: str) -> NoReturn:
        self.refuse(first)

    def open_output(self, path: str) -> NoReturn:
        self.refuse(path)

    def sync(self, path: str) -> NoReturn:
        self.refuse(path)

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> NoReturn:
        self.refuse(path)

    def delete_all(self, paths: Iterable[str]) -> NoReturn:
        self.refuse(next(iter(paths), ""))

    def copy_object(self, path: str, original: str) -> NoReturn:
        self.refuse(path)

    def refuse(self, path: str = "") -> NoReturn:
        """Raise `ReadOnlyError`."""
        raise refusal(self.name, self.root, path)


def refusal(name: str, root: str, path: str = "") -> ReadOnlyError:
    """Error for a change of an attached warehouse."""
    message = f"the catalog {name} ({root}) is attached to be read only, and nothing in it was changed: open that warehouse itself to write"
    return ReadOnlyError(message, path=path or None)


def check_writable(storage: Storage) -> None:
    """Raise `ReadOnlyError` if the storage is read-only."""
    if isinstance(storage, ReadOnlyStorage):
        storage.refuse()
