"""What the engine asks of a storage.

A `Storage` is rooted at one directory (a table's base path, or a warehouse); every path is relative to it, with forward
slashes, and one that would leave the root is refused with `UnsafePathError` before anything happens. It is picklable, so that
tasks can carry it to other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An entry of a listing. `path` is relative to the root; `size` in bytes; `modified_ms` since the epoch (UTC). `tag` is what an object
    store knows the content by: its times may be of whole seconds.
    """

    path: str
    size: int
    modified_ms: int
    is_directory: bool = False
    tag: str | None = None

    @property
    def version(self) -> tuple[int, int, str | None]:
        """Another one where the content is another, as far as the storage tells."""
        return self.size, self.modified_ms, self.tag

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


Listing = list[StoredFile]


class Directories(Protocol):
    """What can be looked through; methods as those of `Storage`."""

    @property
    def root(self) -> str: ...

    def list(self, path: str = "") -> Listing: ...

    def head(self, path: str) -> StoredFile | None: ...


class Storage(Protocol):
    """Six verbs on small files, three on data files. Only this interface changes anything below the root."""

    @property
    def root(self) -> str:
        """Absolute location without a trailing slash, as it stands in messages."""
        ...

    def uri(self, path: str = "") -> str:
        """`path` as Spark and other engines must be given it (`file:///...`, `s3://...`)."""
        ...

    def list(self, path: str = "") -> Listing:
        """Direct children sorted by name; an absent directory lists as empty. Links to directories, or out of the root, are left out."""
        ...

    def walk(self, path: str = "") -> Listing:
        """Every file below `path`, at any depth, sorted by path."""
        ...

    def unpublished(self, path: str = "") -> Listing:
        """Files directly in `path` that a call is about to publish, or that died before it did; no other method shows them."""
        ...

    def head(self, path: str) -> StoredFile | None:
        """The entry, or None."""
        ...

    def read(self, path: str) -> bytes:
        """The whole content. Raises `StoredFileNotFoundError`."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Create with full content, atomically and durably, or raise `StoredFileExistsError` and change nothing.

        A reader sees no file or all of it. On return the content survives a power cut.
        """
        ...

    def overwrite(self, path: str, data: bytes) -> None:
        """Create or replace, atomically and durably. For `hoodie.properties`, heartbeats, stored views and plans made anew only."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False (and no error) when it is not there."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory and all below it; no error when it is not there. Links are unlinked, never followed."""
        ...

    def delete_empty(self, path: str) -> bool:
        """Remove a directory that holds no file, with the directories in it, and what died unpublished there; whether it is gone.

        A file that another process makes meanwhile stays, and so do the directories above it.
        """
        ...

    def rename_tree(self, source: str, target: str) -> None:
        """Move a directory and all below it, in one step: a reader sees it under one of the two names.

        Raises `StoredFileNotFoundError` when `source` is not there, `StoredFileExistsError` when `target` is.
        """
        ...

    def exchange_trees(self, first: str, second: str) -> None:
        """Let two directories trade places, in one step where the system has that: a reader of either name always finds one of them.

        Raises `StoredFileNotFoundError` when one is not there.
        """
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader of a data file. Raises `StoredFileNotFoundError`."""
        ...

    def open_output(self, path: str) -> pa.NativeFile:
        """A writer of a new data file (directories are made); durable once closed and synced (`sync`).

        What an exception leaves of it is garbage; in object stores, where nothing is there before it is closed, it leaves nothing.
        """
        ...

    def link(self, path: str, original: str) -> bool:
        """Give the data file at the path `original` of this machine (`local_path` of a storage) a second name here; directories are made.

        False, with nothing changed, where the two cannot be one file: on different file systems, or where there are no such names. Neither
        name is affected by what happens to the other: files are removed by name, and one with several names is never written into
        (`open_output`). Durable once its directory is synced. Raises `StoredFileNotFoundError` without the original, and
        `StoredFileExistsError` where `path` is there.
        """
        ...

    def sync(self, path: str) -> None:
        """Make a closed data file and its directory entry durable; of a directory, the entries made and removed in it."""
        ...

    def local_path(self, path: str = "") -> str | None:
        """Where `path` is in this machine's file system, for locks that the kernel keeps; None for other storages."""
        ...


Tag = Mapping[str, str]
"""What tells one content of an object from those before and after it: its `e_tag`, its `version`, or both."""


class TaggedStorage(Storage, Protocol):
    """One that replaces content by its tag: object stores."""

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        """Content and tag of a file; None where it is not there."""
        ...

    def has_object(self, path: str) -> bool:
        """Whether there is a file, and no directory, of that name: one request, where `head` makes two for what is not there."""
        ...

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        """As `walk`; None where more than `most` objects are below `path`, of which no more are listed then."""
        ...

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete files; none of them need be there."""
        ...

    def copy_object(self, path: str, original: str) -> bool:
        """Let the store copy the object at the address `original` (`uri` of a storage with the same options) to `path`, in one step.

        Over what is there: for names that nobody else gives. False, with nothing changed, where it is in another bucket. Raises
        `StoredFileNotFoundError` without the original.
        """
        ...

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        """Put `data` in the place of the content that had `tag` (None: where nothing is); the tag of the new content.

        None, with nothing changed, where something else is there.
        """
        ...
