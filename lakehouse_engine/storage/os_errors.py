"""Turns the operating system's errors into the engine's."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine.errors import StorageError, StoredFileExistsError, StoredFileNotFoundError

_ADVICE = {
    errno.ENOSPC: "the disk is full; make room and try again",
    errno.EDQUOT: "the disk quota is used up; make room and try again",
    errno.EACCES: "access is denied; check the permissions of the table's directory",
    errno.EPERM: "the operation is not permitted (hard links are needed); check permissions and the kind of file system",
    errno.EROFS: "the file system is mounted read-only",
    errno.EMFILE: "this process has too many open files; raise its limit (ulimit -n)",
    errno.ENFILE: "the machine has too many open files",
    errno.ENAMETOOLONG: "the name is longer than the file system allows",
    errno.EISDIR: "a directory is in its place",
    errno.EOPNOTSUPP: "the file system has no hard links, which atomic creation needs",
}


def is_full(error: StorageError) -> bool:
    """True if the storage is full."""
    return error.context.get("errno") in (str(errno.ENOSPC), str(errno.EDQUOT))


@contextmanager
def as_storage_errors(what: str, path: str, root: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StorageError` with `path`, including those that Arrow raises while it writes.

    `what` is the verb of the message ("write", "list"). An absent file becomes `StoredFileNotFoundError`, an existing one
    `StoredFileExistsError`; the cause is kept.
    """
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoredFileNotFoundError(f"cannot {what} {path!r}: it is not there", path=path, root=root) from error
    except FileExistsError as error:
        raise StoredFileExistsError(f"cannot {what} {path!r}: it is there already", path=path, root=root) from error
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"cannot {what} {path!r}: {advice}", path=path, root=root, errno=error.errno) from error
