"""What executors answer about a table's storage, and what of it is refused with which remedy. (On executors: tests/cluster.)"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import ExecutorStorageError, StorageError
from lakehouse_engine.spark.tasks import handshake
from lakehouse_engine.spark.tasks.handshake import Greeting, judge
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.read_only import ReadOnlyStorage

TOKEN, PATH, FOLDER = b"token", "f/token", "f"


class Store(LocalStorage):
    """As one in an object store: nothing of it is in this machine's file system."""

    def local_path(self, path: str = "") -> str | None:
        return None


class Unknown(Store):
    """Needs a package that is not there."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _import, ()


class Forbidden(Store):
    def create(self, path: str, data: bytes) -> None:
        raise StorageError("403 Forbidden", path=path)


def _import() -> object:
    raise ModuleNotFoundError("No module named 'obstore'")


def asked(storage: Any, folder: str | None = FOLDER) -> list[Greeting]:
    """The answer of this process, as one of an executor."""
    question = handshake._question(storage, folder, PATH)
    batch = pa.record_batch([pa.array([0])], ["id"])
    return [Greeting(*pickle.loads(answer)) for made in question(iter([batch])) for answer in made.column(0).to_pylist()]


@pytest.fixture
def root(tmp_path: Path) -> str:
    LocalStorage(str(tmp_path)).create(PATH, TOKEN)
    return str(tmp_path)


@pytest.mark.parametrize("kind", [LocalStorage, Store])
def test_an_executor_that_reads_and_writes_is_good(kind: type[LocalStorage], root: str) -> None:
    judge(asked(kind(root)), LocalStorage(root), TOKEN)


@pytest.mark.parametrize("kind", [LocalStorage, Store, Forbidden])
def test_an_executor_of_what_is_only_read_need_not_write(kind: type[LocalStorage], root: str) -> None:
    storage = ReadOnlyStorage(kind(root), "prod")
    before = LocalStorage(root).walk()
    judge(asked(storage, None), storage, TOKEN)
    assert LocalStorage(root).walk() == before


@pytest.mark.parametrize(("kind", "words"), [(Unknown, "cannot open the storage.*'obstore'"), (Forbidden, "403 Forbidden")])
def test_what_is_missing_for_an_object_store_is_named(kind: type[LocalStorage], words: str, root: str) -> None:
    with pytest.raises(ExecutorStorageError, match=f"{words}.*package obstore.*endpoint.*credentials.*storage_options"):
        judge(asked(kind(root)), Store(root), TOKEN)


@pytest.mark.parametrize(("kind", "words"), [(LocalStorage, "mount the warehouse"), (Store, "credentials")])
def test_the_remedy_is_that_of_the_storage(kind: type[LocalStorage], words: str, root: str, tmp_path: Path) -> None:
    elsewhere = asked(kind(str(tmp_path / "elsewhere")))
    with pytest.raises(ExecutorStorageError, match=f"does not find what the driver wrote.*{words}"):
        judge(elsewhere, kind(root), TOKEN)


def test_a_file_that_the_driver_does_not_see_is_no_proof(root: str, tmp_path: Path) -> None:
    LocalStorage(str(tmp_path / "other")).create(PATH, TOKEN)
    with pytest.raises(ExecutorStorageError, match=r"not there for the driver.*credentials"):
        judge(asked(Store(str(tmp_path / "other"))), Store(root), TOKEN)
