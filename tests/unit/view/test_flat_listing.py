"""A partitioned table in an object store is found in one listing, and is the one that directories would show."""

from __future__ import annotations

import random
import uuid

import pytest
from obstore.store import MemoryStore

from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.objects import store as object_store
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.view.listings import flat_listing
from lakehouse_engine.view.listings.flat_listing import Folders, lister_of
from lakehouse_engine.view.listings.listing import StorageLister

METAFILE = ".hoodie_partition_metadata"
NAMES = ("a", "b=1", "c-", ".d", "e f", METAFILE, f"{METAFILE}.parquet", ".hoodie")


def tree(random_: random.Random) -> list[str]:
    """Paths of files, none of which is a directory of others."""
    found: set[str] = set()
    for _ in range(random_.randrange(1, 25)):
        folders = [random_.choice((*NAMES[:5], ".hoodie")) for _ in range(random_.randrange(4))]
        found.add("/".join([*folders, random_.choice((METAFILE, f"{METAFILE}.parquet", "x.parquet", "y.parquet"))]))
    return sorted(found)


def filled(paths: list[str]) -> MemoryStorage:
    storage = MemoryStorage()
    for path in paths:
        storage.create(path, b"1")
    return storage


@pytest.mark.parametrize("seed", range(200))
def test_folders_of_a_listing_are_searched_like_directories(seed: int) -> None:
    paths = tree(random.Random(seed))
    storage = filled(paths)
    folders = Folders.of(storage.walk())
    for partitioned in (False, True):
        assert StorageLister(folders, partitioned).partitions() == StorageLister(storage, partitioned).partitions(), paths
    for partition in {path.rpartition("/")[0] for path in paths if not path.startswith(".hoodie/")} | {"", "nothing"}:
        assert [entry for entry in folders.list(partition) if not entry.is_directory] == StorageLister(storage).files(partition)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """A table of three partitions in a store in memory."""
    held = MemoryStore()
    monkeypatch.setattr(object_store, "_from_url", lambda location, **settings: held)
    storage = ObjectStorage.at(f"s3://bucket-{uuid.uuid4().hex}/t")
    for number in range(3):
        storage.create(f"p={number}/{METAFILE}", b"1")
        storage.create(f"p={number}/one.parquet", b"1")
    return storage


def asked(storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the storage from now on."""
    calls: list[str] = []
    for name in ("list", "head", "has_object", "walk_up_to"):
        real = getattr(ObjectStorage, name)

        def counted(self: ObjectStorage, *given: object, _name: str = name, _real: object = real) -> object:
            calls.append(_name)
            return _real(self, *given)  # type: ignore[operator]

        monkeypatch.setattr(ObjectStorage, name, counted)
    return calls


def test_one_listing_finds_partitions_and_files(bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, lister = asked(bucket, monkeypatch), lister_of(bucket, partitioned=True)
    assert lister.partitions() == ["p=0", "p=1", "p=2"]
    assert [file.name for file in lister.files("p=1")] == [METAFILE, "one.parquet"]
    assert calls == ["walk_up_to"]


def test_who_asks_again_is_told_what_is_there_now(bucket: ObjectStorage) -> None:
    lister = lister_of(bucket, partitioned=True)
    lister.partitions()
    lister.files("p=1")
    bucket.create("p=1/two.parquet", b"1")
    assert [file.name for file in lister.files("p=1")] == [METAFILE, "one.parquet", "two.parquet"]


@pytest.mark.parametrize("partition", ["p=1", None])
def test_what_is_forgotten_is_looked_at(bucket: ObjectStorage, partition: str | None) -> None:
    lister = lister_of(bucket, partitioned=True)
    lister.partitions()
    bucket.create("p=1/two.parquet", b"1")
    lister.forget(partition)
    assert [file.name for file in lister.files("p=1")] == [METAFILE, "one.parquet", "two.parquet"]


def test_a_table_of_many_objects_is_searched_by_directories(bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_listing, "MOST", 5)
    calls, lister = asked(bucket, monkeypatch), lister_of(bucket, partitioned=True)
    assert lister.partitions() == ["p=0", "p=1", "p=2"]
    assert [file.name for file in lister.files("p=1")] == [METAFILE, "one.parquet"]
    assert calls.count("has_object") == 5
    assert calls.count("list") == 2


def test_directories_of_this_machine_are_searched_as_ever() -> None:
    assert isinstance(lister_of(filled([f"p/{METAFILE}"]), partitioned=True), StorageLister)
