from __future__ import annotations

from lakehouse_engine.storage.faults import FaultyStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.view.listings.listing import StorageLister

METAFILE = ".hoodie_partition_metadata"


def storage_with(*paths: str) -> MemoryStorage:
    storage = MemoryStorage()
    for path in (".hoodie/hoodie.properties", *paths):
        storage.create(path, b"")
    return storage


def test_directories_with_the_metafile_are_partitions_at_any_depth() -> None:
    storage = storage_with(f"a=1/b=2/{METAFILE}", f"a=1/b=3/{METAFILE}", f"a=0/{METAFILE}", "other/file.parquet", "a=1/c/file.parquet")
    assert StorageLister(storage).partitions() == ["a=0", "a=1/b=2", "a=1/b=3"]


def test_table_without_partitions_has_one_with_an_empty_path_and_is_not_searched_further() -> None:
    storage = storage_with(METAFILE, f"below/{METAFILE}", "file.parquet")
    assert StorageLister(storage).partitions() == [""]
    assert [file.name for file in StorageLister(storage).files("")] == [METAFILE, "file.parquet"]


def test_metafile_in_the_format_of_base_files_counts() -> None:
    assert StorageLister(storage_with(f"a/{METAFILE}.parquet", f"b/{METAFILE}.orc")).partitions() == ["a", "b"]


def test_metadata_folder_is_never_a_partition() -> None:
    storage = storage_with(f".hoodie/metadata/files/{METAFILE}", f"a/.hoodie/x/{METAFILE}", f"a/b/{METAFILE}")
    assert StorageLister(storage).partitions() == ["a/b"]


def test_table_without_data_has_no_partitions() -> None:
    assert StorageLister(storage_with()).partitions() == []
    assert StorageLister(storage_with()).files("nothing") == []


class ListingCounter(FaultyStorage):
    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner)
        self.listed: list[str] = []

    def list(self, path: str = ""):  # type: ignore[no-untyped-def]
        self.listed.append(path)
        return super().list(path)


def test_finding_partitions_does_not_list_their_files() -> None:
    storage = ListingCounter(storage_with(*(f"p={number}/{METAFILE}" for number in range(20))))
    assert len(StorageLister(storage).partitions()) == 20
    assert storage.listed == [""]
