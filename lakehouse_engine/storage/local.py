"""A directory of the local file system (or a mounted one) as a storage.

To create a file, it writes a temporary file in the same directory, syncs it, and hard-links it to the final name. `link` fails if the name
is taken, so exactly one of any number of processes creates the file, and a reader never sees half of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import path as ospath

import pyarrow as pa

from lakehouse_engine.errors import StorageError, StoredFileExistsError, StoredFileNotFoundError, UnsafePathError
from lakehouse_engine.storage.base import Listing, StoredFile
from lakehouse_engine.storage.exchange import exchange
from lakehouse_engine.storage.os_errors import as_storage_errors
from lakehouse_engine.storage.paths import check_relative, checksum_name, is_hidden_name, is_temporary_name, parent_of, temporary_name

_NOT_LINKED = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of a link: another file system, one without links, a protected file of another user, too many names."""
_STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)
"""A file was put there meanwhile, or a file system is mounted there."""
_LOOKS = 100
"""Readings of a directory in which other processes keep removing files. What goes during the last one counts as absent."""
_TRIES = 10
"""Attempts to publish a file in a directory that other processes keep removing because it is empty."""


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """Rooted at `root`: a path, made absolute, or a `file:` URI (not percent-decoded, like in Hadoop).

    The root need not exist. Raises `StorageError` for a URI of another scheme.
    """

    root: str

    def __post_init__(self) -> None:
        text = os.fspath(self.root)
        if text.startswith("file:"):
            text = "/" + text[len("file:") :].lstrip("/")
        elif "://" in text:
            raise StorageError(f"{text!r} is not in the local file system: give a path or a file: URI")
        object.__setattr__(self, "root", ospath.abspath(text))

    def uri(self, path: str = "") -> str:
        # Hadoop's Path does not decode, so percent-encoding here would name another file.
        return f"file://{self._full(path)}"

    def local_path(self, path: str = "") -> str | None:
        return self._inside(path)

    def list(self, path: str = "") -> Listing:
        relative = check_relative(path)
        with as_storage_errors("list", relative, self.root):
            return self._listed(relative)

    def walk(self, path: str = "") -> Listing:
        found: Listing = []
        pending = [check_relative(path)]
        while pending:
            for entry in self.list(pending.pop()):
                if entry.is_directory:
                    pending.append(entry.path)
                else:
                    found.append(entry)
        return sorted(found, key=lambda entry: entry.path)

    def unpublished(self, path: str = "") -> Listing:
        relative = check_relative(path)
        with as_storage_errors("list", relative, self.root):
            return self._listed(relative, is_temporary_name)

    def head(self, path: str) -> StoredFile | None:
        full = self._inside(path)
        with as_storage_errors("look at", path, self.root):
            try:
                return _stored_file(path.removesuffix("/"), os.stat(full))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read(self, path: str) -> bytes:
        full = self._inside(path)
        with as_storage_errors("read", path, self.root), open(full, "rb") as file:
            return file.read()

    def create(self, path: str, data: bytes) -> None:
        full = self._inside(path)

        def publish(temporary: str) -> None:
            if ospath.lexists(full):
                raise StoredFileExistsError(f"cannot create {path!r}: it is there already", path=path, root=self.root)
            _remove_checksum(full)
            _link(temporary, full)

        with as_storage_errors("create", path, self.root):
            self._published(full, data, publish)
        self._sync_directory(ospath.dirname(full), path)

    def overwrite(self, path: str, data: bytes) -> None:
        full = self._inside(path)

        def publish(temporary: str) -> None:
            _remove_checksum(full)
            os.replace(temporary, full)

        with as_storage_errors("overwrite", path, self.root):
            self._published(full, data, publish)
        self._sync_directory(ospath.dirname(full), path)

    def delete(self, path: str) -> bool:
        full = self._inside_unresolved(path)
        with as_storage_errors("delete", path, self.root):
            try:
                os.unlink(full)
            except (FileNotFoundError, NotADirectoryError):
                return False
            _remove_checksum(full)
            return True

    def delete_tree(self, path: str) -> None:
        full = self._inside_unresolved(path)
        with as_storage_errors("delete", path, self.root):
            if ospath.islink(full) or ospath.isfile(full):
                os.unlink(full)
                return
            while ospath.isdir(full):
                # Another process may be removing the same tree: absent entries are no error.
                with suppress(FileNotFoundError):
                    shutil.rmtree(full)

    def delete_empty(self, path: str) -> bool:
        full = self._inside_unresolved(path)
        with as_storage_errors("delete", path, self.root):
            if ospath.islink(full) or ospath.isfile(full):
                return False
            for directory, _, _ in os.walk(full, topdown=False):
                _remove_if_empty(directory)
            return not ospath.lexists(full)

    def rename_tree(self, source: str, target: str) -> None:
        before, after = self._inside_unresolved(source), self._inside_unresolved(target)
        with as_storage_errors("rename", source, self.root):
            if ospath.lexists(after):
                raise StoredFileExistsError(f"cannot rename {source!r} to {target!r}: it is there already", path=target, root=self.root)
            _rename(before, after)
        self._sync_directory(ospath.dirname(after), target)
        self._sync_directory(ospath.dirname(before), source)

    def exchange_trees(self, first: str, second: str) -> None:
        one, other = self._inside_unresolved(first), self._inside_unresolved(second)
        with as_storage_errors("exchange", first, self.root):
            if not exchange(one, other):
                # Without the system call there is a moment without `second`.
                aside = f"{other}.{uuid.uuid4().hex}"
                os.rename(other, aside)
                os.rename(one, other)
                os.rename(aside, one)
        self._sync_directory(ospath.dirname(one), first)
        self._sync_directory(ospath.dirname(other), second)

    def open_input(self, path: str) -> pa.NativeFile:
        full = self._inside(path)
        with as_storage_errors("open", path, self.root):
            return pa.OSFile(full, "rb")

    def open_output(self, path: str) -> pa.NativeFile:
        """Like `Storage.open_output`. Wrap writes in `as_storage_errors`: Arrow raises a bare `OSError` on a full disk."""
        full = self._inside(path)
        with as_storage_errors("write", path, self.root):
            _make_directories(ospath.dirname(full))
            _remove_checksum(full)
            _let_go_of_shared(full)
            return pa.OSFile(full, "wb")

    def link(self, path: str, original: str) -> bool:
        full = self._inside_unresolved(path)
        with as_storage_errors("link", path, self.root):
            if not ospath.exists(original):
                raise StoredFileNotFoundError(f"cannot link {path!r}: {original!r} is not there", path=path, root=self.root)
            _make_directories(ospath.dirname(full))
            _remove_checksum(full)
            try:
                os.link(ospath.realpath(original), full)
            except OSError as error:
                if error.errno in _NOT_LINKED:
                    return False
                raise
        return True

    def sync(self, path: str) -> None:
        full = self._inside(path)
        with as_storage_errors("make durable", path, self.root):
            _fsync(full)
        if not ospath.isdir(full):
            self._sync_directory(ospath.dirname(full), path)

    def _full(self, path: str) -> str:
        return self._joined(check_relative(path))

    def _joined(self, relative: str) -> str:
        return ospath.join(self.root, relative) if relative else self.root

    def _inside(self, path: str) -> str:
        """Absolute path, after checking that no link on the way leaves the root."""
        relative = check_relative(path)
        full = self._joined(relative)
        if not self._is_without_links(relative) and not self._is_inside(full):
            raise UnsafePathError(f"{path!r} leads out of the table through a symbolic link", path=path, root=self.root)
        return full

    def _inside_unresolved(self, path: str) -> str:
        """Like `_inside`, for removals: the last segment may be a link, because it is unlinked and not followed."""
        relative = check_relative(path)
        if not relative:
            raise UnsafePathError("the root of a storage is not deleted through it", root=self.root)
        return ospath.join(self._inside(parent_of(relative)), relative.rpartition("/")[2])

    def _is_without_links(self, relative: str) -> bool:
        """True if no part of the path below the root is a link, so that it cannot leave the root. Resolving the root too is most of the
        cost of a lookup.
        """
        full = self.root
        for segment in relative.split("/"):
            full = f"{full}/{segment}"
            try:
                if stat.S_ISLNK(os.lstat(full).st_mode):
                    return False
            except (FileNotFoundError, NotADirectoryError):
                return True
            except OSError:
                return False
        return True

    def _is_inside(self, full: str) -> bool:
        real = ospath.realpath(full)
        if real == full:
            return True
        root = ospath.realpath(self.root)
        return real == root or real.startswith(root.rstrip("/") + "/")

    def _is_file_inside(self, link: str) -> bool:
        """Leaves out links to directories too: they may form a loop, and their files are listed at their real place."""
        return ospath.isfile(link) and self._is_inside(link)

    def _listed(self, relative: str, wanted: Callable[[str], bool] = lambda name: not is_hidden_name(name)) -> Listing:
        """What was there at one moment. A file that goes before its size is asked was there when an older one was that is listed: of a
        timeline that is archived, the middle would be missing. So the directory is read again.
        """
        prefix = f"{relative}/" if relative else ""
        for _ in range(_LOOKS):
            named = list(self._entries(relative, wanted))
            found = [_stored_file(prefix + entry.name, status) for entry in named if (status := _status(entry)) is not None]
            if len(found) == len(named):
                break
        return sorted(found, key=lambda one: one.path)

    def _entries(self, relative: str, wanted: Callable[[str], bool]) -> Iterator[os.DirEntry[str]]:
        """Entries of a directory, without links that are broken or lead elsewhere."""
        try:
            entries = os.scandir(self._inside(relative))
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                if wanted(entry.name) and (not entry.is_symlink() or self._is_file_inside(entry.path)):
                    yield entry

    def _published(self, full: str, data: bytes, publish: Callable[[str], None]) -> None:
        """Let `publish` name a durable file with `data`. Repeats once if another process removed the directory as empty."""
        for _ in range(_TRIES - 1):
            with suppress(FileNotFoundError):
                with self._temporary(full, data) as temporary:
                    publish(temporary)
                return
        with self._temporary(full, data) as temporary:
            publish(temporary)

    @contextmanager
    def _temporary(self, full: str, data: bytes) -> Iterator[str]:
        """A durable temporary file with `data` beside `full`, removed at the end unless it was renamed."""
        directory = ospath.dirname(full)
        _make_directories(directory)
        temporary = ospath.join(directory, temporary_name(uuid.uuid4().hex))
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                if data:
                    # An empty file is only a directory entry, which is synced anyway.
                    os.fsync(file.fileno())
            yield temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def _sync_directory(self, directory: str, path: str) -> None:
        # If another process removed the directory, what was made in it is gone.
        with as_storage_errors("make durable", path, self.root), suppress(FileNotFoundError):
            _fsync(directory)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None if it went meanwhile."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


def _stored_file(path: str, status: os.stat_result) -> StoredFile:
    is_directory = stat.S_ISDIR(status.st_mode)
    return StoredFile(path, 0 if is_directory else status.st_size, status.st_mtime_ns // 1_000_000, is_directory)


def _rename(before: str, after: str) -> None:
    """Repeats once if another process removed the target's directory as empty."""
    for _ in range(_TRIES):
        _make_directories(ospath.dirname(after))
        try:
            os.rename(before, after)
            return
        except FileNotFoundError:
            if not ospath.lexists(before):
                raise
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            raise FileExistsError(errno.EEXIST, "another process made it meanwhile", after) from error
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), after)


def _remove_if_empty(directory: str) -> None:
    """Remove a directory that holds only unlisted names, with those."""
    with suppress(FileNotFoundError):
        names = os.listdir(directory)
        if not all(map(is_hidden_name, names)):
            return
        for name in names:
            os.unlink(ospath.join(directory, name))
        try:
            os.rmdir(directory)
        except OSError as error:
            if error.errno not in _STAYS:
                raise


def _remove_checksum(full: str) -> None:
    """Remove a checksum file of earlier content; Hadoop would reject the new content."""
    directory, name = ospath.split(full)
    with suppress(FileNotFoundError):
        os.unlink(ospath.join(directory, checksum_name(name)))


def _let_go_of_shared(full: str) -> None:
    """Break a link before a file is opened for writing: a clone shares it under another name."""
    with suppress(FileNotFoundError):
        if os.stat(full).st_nlink > 1:
            os.unlink(full)


def _link(temporary: str, full: str) -> None:
    try:
        os.link(temporary, full)
    except FileExistsError:
        # A network file system may repeat a link whose answer was lost; then the existing name is ours.
        if not ospath.samefile(temporary, full):
            raise


def _make_directories(directory: str) -> None:
    """Make missing directories, each durable in its parent."""
    missing = []
    while not ospath.isdir(directory):
        missing.append(directory)
        directory = ospath.dirname(directory)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path)
        _fsync(ospath.dirname(path))


def _fsync(full: str) -> None:
    descriptor = os.open(full, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
