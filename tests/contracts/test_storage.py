"""What every storage promises, one suite for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import StorageError, StoredFileExistsError, StoredFileNotFoundError, UnsafePathError
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.faults import FaultyStorage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.overlaid import OverlaidStorage

STORAGES: dict[str, Callable[[Path], Storage]] = {
    "local": lambda path: LocalStorage(str(path / "table")),
    "memory": lambda path: MemoryStorage(),
    "faulty without a fault": lambda path: FaultyStorage(MemoryStorage()),
    "overlaid, beside its tables": lambda path: OverlaidStorage(LocalStorage(str(path / "table")), ".over", {"x.y"}),
}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return STORAGES[request.param](tmp_path)


def names(storage: Storage, path: str = "") -> list[str]:
    return [entry.name for entry in storage.list(path)]


def test_created_file_reads_back_with_size_and_parents_made(storage: Storage) -> None:
    storage.create("a/b/file", b"content")
    assert storage.read("a/b/file") == b"content"
    entry = storage.head("a/b/file")
    assert entry is not None
    assert (entry.path, entry.name, entry.size, entry.is_directory) == ("a/b/file", "file", 7, False)
    assert entry.modified_ms > 1_700_000_000_000


def test_files_that_are_not_published_show_where_they_are_asked_for_and_nowhere_else(storage: Storage) -> None:
    hidden = [".~lakehouse-0123.tmp", "a/.~lakehouse-4567.tmp"]
    for path in ("file", "a/file", ".file.crc", *hidden):
        storage.create(path, b"content")
    assert [entry.path for entry in storage.unpublished()] == hidden[:1]
    assert [(entry.path, entry.size) for entry in storage.unpublished("a")] == [(hidden[1], 7)]
    assert storage.unpublished("nowhere") == []
    assert [entry.path for entry in storage.walk()] == ["a/file", "file"]
    assert all(storage.delete(path) for path in hidden)
    assert storage.unpublished("a") == []


def test_create_of_an_existing_file_raises_and_keeps_the_first_content(storage: Storage) -> None:
    storage.create("file", b"first")
    with pytest.raises(StoredFileExistsError):
        storage.create("file", b"second")
    assert storage.read("file") == b"first"
    assert names(storage) == ["file"]


def test_create_raced_by_threads_has_exactly_one_winner(storage: Storage) -> None:
    def attempt(number: int) -> bool:
        try:
            storage.create("dir/file", str(number).encode())
        except StoredFileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(32)))
    assert sum(won) == 1
    assert storage.read("dir/file") == str(won.index(True)).encode()


def test_empty_file_is_a_file(storage: Storage) -> None:
    storage.create("empty", b"")
    assert storage.read("empty") == b""
    assert storage.head("empty") is not None


def test_overwrite_creates_and_replaces(storage: Storage) -> None:
    storage.overwrite("file", b"one")
    storage.overwrite("file", b"two")
    assert storage.read("file") == b"two"
    assert names(storage) == ["file"]


def test_list_gives_direct_children_sorted_with_directories_marked(storage: Storage) -> None:
    for path in ("b", "a/x", "a/y/z", ".hidden"):
        storage.create(path, b"1")
    assert [(entry.path, entry.is_directory) for entry in storage.list()] == [(".hidden", False), ("a", True), ("b", False)]
    assert [entry.path for entry in storage.list("a")] == ["a/x", "a/y"]
    assert [entry.path for entry in storage.list("a/")] == ["a/x", "a/y"]


def test_absent_directory_lists_and_walks_as_empty(storage: Storage) -> None:
    assert storage.list("nowhere") == []
    assert storage.walk("nowhere") == []
    assert storage.head("nowhere") is None
    assert storage.list() == []


def test_walk_gives_every_file_sorted_by_path(storage: Storage) -> None:
    for path in ("b", "a/x", "a/y/z", "a-c"):
        storage.create(path, b"1")
    assert [entry.path for entry in storage.walk()] == ["a-c", "a/x", "a/y/z", "b"]
    assert [entry.path for entry in storage.walk("a")] == ["a/x", "a/y/z"]


def test_head_of_a_directory_says_so(storage: Storage) -> None:
    storage.create("a/b/file", b"1")
    entry = storage.head("a")
    assert entry is not None
    assert entry.is_directory


def test_read_of_an_absent_file_is_a_typed_error(storage: Storage) -> None:
    with pytest.raises(StoredFileNotFoundError) as caught:
        storage.read("a/nothing")
    assert caught.value.context["path"] == "a/nothing"
    with pytest.raises(StoredFileNotFoundError):
        storage.open_input("a/nothing")


def test_delete_says_whether_the_file_was_there(storage: Storage) -> None:
    storage.create("a/file", b"1")
    assert storage.delete("a/file") is True
    assert storage.delete("a/file") is False
    assert storage.delete("a/file/below") is False
    storage.create("a/file", b"2")
    assert storage.read("a/file") == b"2"


def test_delete_tree_removes_everything_below_and_nothing_beside(storage: Storage) -> None:
    for path in ("a/x", "a/y/z", "ab"):
        storage.create(path, b"1")
    storage.delete_tree("a")
    storage.delete_tree("a")
    assert [entry.path for entry in storage.walk()] == ["ab"]


def test_parquet_written_through_open_output_reads_through_open_input(storage: Storage) -> None:
    table = pa.table({"id": list(range(1000)), "text": [str(n) for n in range(1000)]})
    with storage.open_output("part=1/file.parquet") as output:
        pq.write_table(table, output)
    storage.sync("part=1/file.parquet")
    with storage.open_input("part=1/file.parquet") as stored:
        assert pq.read_table(stored).equals(table)
    entry = storage.head("part=1/file.parquet")
    assert entry is not None
    assert entry.size == len(storage.read("part=1/file.parquet")) > 0


def test_open_output_overwrites_the_file_of_an_earlier_attempt(storage: Storage) -> None:
    for content in (b"a longer first attempt", b"second"):
        with storage.open_output("file") as output:
            output.write(content)
    assert storage.read("file") == b"second"


def test_sync_of_an_absent_file_is_an_error(storage: Storage) -> None:
    with pytest.raises(StoredFileNotFoundError):
        storage.sync("nothing")


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "../x", "a/../../x", "a/./b", "a//b", "a/..", "x\0y", "/"])
def test_path_that_leaves_the_root_is_refused_by_every_verb(storage: Storage, path: str) -> None:
    for verb in (storage.read, storage.delete, storage.delete_tree, storage.open_input, storage.open_output, storage.sync):
        with pytest.raises(UnsafePathError):
            verb(path)
    for listing in (storage.list, storage.walk, storage.head, storage.uri, storage.local_path):
        with pytest.raises(UnsafePathError):
            listing(path)
    for write in (storage.create, storage.overwrite):
        with pytest.raises(UnsafePathError):
            write(path, b"")


def test_root_itself_is_never_deleted(storage: Storage) -> None:
    with pytest.raises(UnsafePathError):
        storage.delete_empty("")
    storage.create("file", b"1")
    for verb in (storage.delete, storage.delete_tree):
        with pytest.raises(StorageError):
            verb("")
    assert names(storage) == ["file"]


@pytest.mark.parametrize("name", ["with space", "a=b%2Fc", "ünïcode-日本", "semi;colon'\"", "back\\slash", "#?&", "new\nline"])
def test_odd_names_are_kept_as_they_are(storage: Storage, name: str) -> None:
    storage.create(f"{name}/{name}", b"1")
    assert [entry.path for entry in storage.walk()] == [f"{name}/{name}"]
    assert storage.uri(f"{name}/{name}").endswith(f"/{name}/{name}")
    assert storage.delete(f"{name}/{name}")


def test_side_files_and_leftover_temporaries_are_not_listed(storage: Storage) -> None:
    for name in ("file", ".file.crc", ".~lakehouse-0123.tmp", ".hoodie_partition_metadata", ".a_1.log.1_0-0-0"):
        storage.create(f"dir/{name}", b"1")
    assert names(storage, "dir") == [".a_1.log.1_0-0-0", ".hoodie_partition_metadata", "file"]
    assert [entry.name for entry in storage.walk()] == [".a_1.log.1_0-0-0", ".hoodie_partition_metadata", "file"]


def test_a_directory_is_deleted_as_empty_only_where_no_file_is_in_it(storage: Storage) -> None:
    storage.create("a/b/c/file", b"content")
    storage.create("a/bc", b"beside")
    assert not storage.delete_empty("a/b")
    assert not storage.delete_empty("a/bc")
    assert storage.read("a/b/c/file") == b"content"
    storage.delete("a/b/c/file")
    storage.create("a/b/.~lakehouse-dead.tmp", b"half")
    assert storage.delete_empty("a/b")
    assert storage.delete_empty("a/b")
    assert storage.head("a/b") is None
    assert [file.path for file in storage.walk()] == ["a/bc"]


def test_renamed_tree_is_under_the_new_name_alone(storage: Storage) -> None:
    storage.create("a/b/file", b"content")
    storage.create("a/bc/file", b"other")
    storage.rename_tree("a/b", "z/y/x")
    assert [file.path for file in storage.walk()] == ["a/bc/file", "z/y/x/file"]
    assert storage.read("z/y/x/file") == b"content"


def test_exchanged_trees_have_traded_places(storage: Storage) -> None:
    storage.create("a/b/file", b"one")
    storage.create("a/bc", b"beside")
    storage.create("z/y/file", b"two")
    storage.create("z/y/more/file", b"three")
    storage.exchange_trees("a/b", "z/y")
    assert {file.path: storage.read(file.path) for file in storage.walk()} == {
        "a/b/file": b"two",
        "a/b/more/file": b"three",
        "a/bc": b"beside",
        "z/y/file": b"one",
    }


def test_exchange_with_a_tree_that_is_missing_raises_and_changes_nothing(storage: Storage) -> None:
    storage.create("a/file", b"one")
    for pair in (("a", "missing"), ("missing", "a")):
        with pytest.raises(StoredFileNotFoundError):
            storage.exchange_trees(*pair)
    assert [file.path for file in storage.walk()] == ["a/file"]


def test_rename_of_a_missing_tree_or_onto_a_name_that_is_taken_raises_and_changes_nothing(storage: Storage) -> None:
    storage.create("a/file", b"one")
    storage.create("b/file", b"two")
    with pytest.raises(StoredFileExistsError):
        storage.rename_tree("a", "b")
    with pytest.raises(StoredFileNotFoundError):
        storage.rename_tree("missing", "c")
    with pytest.raises(UnsafePathError):
        storage.rename_tree("a", "../c")
    assert [storage.read(f"{name}/file") for name in ("a", "b")] == [b"one", b"two"]


def test_a_second_name_of_a_data_file_is_a_file_of_its_own_or_is_not_made(storage: Storage, tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.write_bytes(b"content")
    if not storage.link("a/second", str(original)):
        assert storage.head("a/second") is None
        assert not isinstance(storage, LocalStorage)
        return
    assert storage.read("a/second") == b"content"
    assert os.stat(original).st_nlink == 2
    with pytest.raises(StoredFileExistsError):
        storage.link("a/second", str(original))
    with pytest.raises(StoredFileNotFoundError):
        storage.link("a/third", str(tmp_path / "nowhere"))
    # Written to under one name it stays under the other.
    with storage.open_output("a/second") as sink:
        sink.write(b"new")
    assert (storage.read("a/second"), original.read_bytes()) == (b"new", b"content")
    assert storage.link("a/third", str(original))
    storage.overwrite("a/third", b"newer")
    assert original.read_bytes() == b"content"
    assert storage.link("a/fourth", str(original))
    assert storage.delete("a/fourth")
    assert original.read_bytes() == b"content"
