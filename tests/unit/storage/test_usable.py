"""Places that can or cannot be a warehouse: what is said, and that nothing is left of the attempt."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from lakehouse_engine.catalog.catalog import Catalog
from lakehouse_engine.errors import ReadOnlyError, StorageError, UnusablePlaceError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.read_only import ReadOnlyStorage
from lakehouse_engine.storage.usable import check_usable


def occupied(folder: Path) -> Path:
    (folder / "file").write_text("not a folder")
    return folder / "file"


def below_a_file(folder: Path) -> Path:
    return occupied(folder) / "warehouse"


def dangling(folder: Path) -> Path:
    (folder / "link").symlink_to(folder / "unmounted")
    return folder / "link" / "warehouse"


@pytest.mark.parametrize(
    ("place", "said"), [(occupied, "file is no folder"), (below_a_file, "file is no folder"), (dangling, "link is a link to nothing")]
)
def test_place_with_a_file_in_the_way_is_refused_by_name(tmp_path, place, said):
    with pytest.raises(UnusablePlaceError, match=said):
        check_usable(LocalStorage(str(place(tmp_path))))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_file_system_that_takes_no_folder_is_refused_by_name_in_check_and_first_schema():
    for attempt in (
        lambda: check_usable(LocalStorage("/proc/x/warehouse")),
        lambda: Catalog(LocalStorage("/proc/x/warehouse")).create_schema("m"),
    ):
        with pytest.raises(UnusablePlaceError, match=r"/proc/x/warehouse cannot be a warehouse: no folder can be made in /proc \("):
            attempt()


def test_folder_that_takes_no_file_is_refused_with_the_reason(tmp_path, monkeypatch):
    def refused(self: LocalStorage, path: str, data: bytes) -> None:
        raise StorageError(f"cannot create {path!r}: the file system is mounted read-only")

    monkeypatch.setattr(LocalStorage, "create", refused)
    with pytest.raises(UnusablePlaceError, match=r"cannot be written to: .*mounted read-only"):
        check_usable(LocalStorage(str(tmp_path)))


def test_parent_without_permission_is_named_with_the_reason(tmp_path, monkeypatch):
    def refused(path: str) -> None:
        raise OSError(errno.EACCES, "denied", path)

    monkeypatch.setattr(os, "mkdir", refused)
    with pytest.raises(UnusablePlaceError, match=rf"no folder can be made in {tmp_path} \(Permission denied\)"):
        check_usable(LocalStorage(str(tmp_path / "mount" / "warehouse")))


def test_usable_places_are_left_as_they_were(tmp_path):
    check_usable(LocalStorage(str(tmp_path / "not" / "there" / "yet")))
    check_usable(LocalStorage(str(tmp_path)))
    check_usable(MemoryStorage())
    assert list(tmp_path.iterdir()) == []


def test_an_attached_warehouse_is_not_tried_and_says_that_it_is_read_only(tmp_path):
    storage = ReadOnlyStorage(LocalStorage(str(tmp_path / "prod")), "prod")
    for attempt in (lambda: check_usable(storage), lambda: Catalog(storage).create_schema("more")):
        with pytest.raises(ReadOnlyError, match="the catalog prod"):
            attempt()
    assert list(tmp_path.iterdir()) == []
