"""Tests whether files can be made at the root of a storage by making one."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress

from lakehouse_engine.errors import StorageError, UnusablePlaceError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.read_only import check_writable

_PROBE = ".lakehouse-probe-"


def check_usable(storage: Storage) -> None:
    """Make a file at the root of `storage` and delete it again, with any folders made for it.

    Raises `UnusablePlaceError` with the obstacle, and `ReadOnlyError` for a read-only storage.
    """
    check_writable(storage)
    root = storage.local_path()
    missing = [] if root is None else _missing_folders(root)
    try:
        if root is not None:
            _make_folders(root, missing)
        _write_probe(storage)
    finally:
        for folder in missing:
            with suppress(OSError):  # not made, or another process put something there meanwhile
                os.rmdir(folder)


def _missing_folders(root: str) -> list[str]:
    """Missing folders of `root`, itself first. Raises `UnusablePlaceError` if a file is in the way."""
    missing: list[str] = []
    place = root
    while not os.path.isdir(place):
        if os.path.lexists(place):
            what = "a link to nothing" if os.path.islink(place) and not os.path.exists(place) else "no folder"
            raise UnusablePlaceError(f"{root} cannot be a warehouse: {place} is {what}; name a folder, or a place where one can be made")
        missing.append(place)
        place = os.path.dirname(place)
    return missing


def _make_folders(root: str, missing: list[str]) -> None:
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:  # noqa: PERF203 - another process made it meanwhile
            continue
        except OSError as error:
            parent = os.path.dirname(folder)
            raise UnusablePlaceError(
                f"{root} cannot be a warehouse: no folder can be made in {parent} ({os.strerror(error.errno or 0)}); "
                "name another place, or mount what belongs there"
            ) from error


def _write_probe(storage: Storage) -> None:
    name = f"{_PROBE}{uuid.uuid4().hex}"
    try:
        storage.create(name, b"")
        storage.delete(name)
    except StorageError as error:
        raise UnusablePlaceError(f"{storage.root} cannot be written to: {error.message}") from error
