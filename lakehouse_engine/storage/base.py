"""The interface that the engine needs of a storage.

A `Storage` is rooted at one directory (a table's base path, or a warehouse). Paths are relative to it, with forward slashes; one that would
leave the root is refused with `UnsafePathError` before anything happens. A storage is picklable, so that tasks can carry it to other
processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An entry of a listing. `path` is relative to the root, `size` is in bytes, `modified_ms` is since the epoch (UTC). `tag` identifies
    an object's content, since its times may be in whole seconds.
    """

    path: str
    size: int
    modified_ms: int
    is_directory: bool = False
    tag: str | None = None

    @property
    def version(self) -> tuple[int, int, str | None]:
        """Differs if the content differs, as far as the storage can tell."""
        return self.size, self.modified_ms, self.tag

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


Listing = list[StoredFile]


class Directories(Protocol):
    """Read-only part of `Storage`, with the same methods."""

    @property
    def root(self) -> str: ...

    def list(self, path: str = "") -> Listing: ...

    def head(self, path: str) -> StoredFile | None: ...


class Storage(Protocol):
    """Six verbs for small files, three for data files. Only this interface changes anything below the root."""

    @property
    def root(self) -> str:
        """Absolute location without a trailing slash, for messages."""
        ...

    def uri(self, path: str = "") -> str:
        """`path` for Spark and other engines (`file:///...`, `s3://...`)."""
        ...

    def list(self, path: str = "") -> Listing:
        """Direct children sorted by name, as they were at one moment: a file that was removed after another is not missing where that one
        is listed. Empty for an absent directory. Links to directories, or out of the root, are left out.
        """
        ...

    def walk(self, path: str = "") -> Listing:
        """Every file below `path`, at any depth, sorted by path."""
        ...

    def unpublished(self, path: str = "") -> Listing:
        """Files directly in `path` that a call is about to publish, or left when it died. No other method lists them."""
        ...

    def head(self, path: str) -> StoredFile | None:
        """The entry, or None."""
        ...

    def read(self, path: str) -> bytes:
        """The whole content. Raises `StoredFileNotFoundError`."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Create with full content, atomically and durably; raises `StoredFileExistsError` with nothing changed.

        A reader sees no file or all of it. On return the content survives a power cut.
        """
        ...

    def overwrite(self, path: str, data: bytes) -> None:
        """Create or replace, atomically and durably. Only for `hoodie.properties`, heartbeats, stored views and renewed plans."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False (and no error) if it does not exist."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory and everything below it; no error if it does not exist. Links are unlinked, never followed."""
        ...

    def delete_empty(self, path: str) -> bool:
        """Remove a directory that holds no files, with its subdirectories and unpublished leftovers; True if it is gone.

        A file that another process makes meanwhile stays, with the directories above it.
        """
        ...

    def rename_tree(self, source: str, target: str) -> None:
        """Move a directory and everything below it in one step: a reader sees it under one of the two names.

        Raises `StoredFileNotFoundError` without `source`, `StoredFileExistsError` if `target` exists.
        """
        ...

    def exchange_trees(self, first: str, second: str) -> None:
        """Swap two directories, in one step if the system supports it: a reader of either name always finds one of them.

        Raises `StoredFileNotFoundError` if one does not exist.
        """
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader of a data file. Raises `StoredFileNotFoundError`."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """A writer of a new data file (makes directories); durable once closed and synced (`sync`).

        After an exception the rest is garbage. In object stores nothing exists before the close, so nothing is left.
        """
        ...

    def link(self, path: str, original: str) -> bool:
        """Hard-link the data file at the path `original` of this machine (`local_path` of a storage) to `path`; makes directories.

        False, with nothing changed, if that is impossible: another file system, or one without links. Neither name depends on the other:
        files are removed by name, and a file with several names is never written into (`open_output`). Durable once its directory is
        synced. Raises `StoredFileNotFoundError` without the original, and `StoredFileExistsError` if `path` exists.
        """
        ...

    def sync(self, path: str) -> None:
        """Make a closed data file and its directory entry durable; for a directory, its entries."""
        ...

    def local_path(self, path: str = "") -> str | None:
        """Path of `path` in this machine's file system, for kernel locks; None for other storages."""
        ...


Tag = Mapping[str, str]
"""Identifies one content of an object among its versions: its `e_tag`, its `version`, or both."""


class TaggedStorage(Storage, Protocol):
    """A storage that replaces content by tag: object stores."""

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        """Content and tag of a file; None if it does not exist."""
        ...

    def has_object(self, path: str) -> bool:
        """True if a file (not a directory) of that name exists. One request; `head` needs two for an absent one."""
        ...

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        """Like `walk`; None if more than `most` objects are below `path`, after listing no more than that."""
        ...

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete files; they need not exist."""
        ...

    def copy_object(self, path: str, original: str) -> bool:
        """Let the store copy the object at the address `original` (`uri` of a storage with the same options) to `path`, in one step.

        It replaces what is there, so only for unique names. False, with nothing changed, if the original is in another bucket. Raises
        `StoredFileNotFoundError` without the original.
        """
        ...

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        """Replace the content with `tag` by `data` (None: nothing exists); returns the new tag.

        None, with nothing changed, if the content has another tag.
        """
        ...
