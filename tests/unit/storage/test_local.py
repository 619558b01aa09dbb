from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import threading
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from lakehouse_engine.errors import StorageError, StoredFileExistsError, StoredFileNotFoundError, UnsafePathError
from lakehouse_engine.storage import local
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.os_errors import as_storage_errors


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(str(root))


def _create_in_a_process(root: str, names: list[str], writer: str, barrier: Barrier, results: str) -> None:
    storage = LocalStorage(root)
    won = []
    for name in names:
        barrier.wait(60)
        try:
            storage.create(name, writer.encode() * 1000)
        except StoredFileExistsError:
            continue
        won.append(name)
    Path(results, writer).write_text("\n".join(won))


def test_put_if_absent_raced_by_two_processes_has_exactly_one_winner(root: Path, tmp_path: Path) -> None:
    names = [f".hoodie/{number:017d}.commit" for number in range(50)]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    results = tmp_path / "results"
    results.mkdir()
    workers = [context.Process(target=_create_in_a_process, args=(str(root), names, writer, barrier, str(results))) for writer in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    won = {writer: (results / writer).read_text().split() for writer in "ab"}
    assert sorted(won["a"] + won["b"]) == names
    storage = LocalStorage(str(root))
    assert all(storage.read(name) == writer.encode() * 1000 for writer, mine in won.items() for name in mine)
    assert len(os.listdir(root / ".hoodie")) == len(names)


def test_reader_never_sees_part_of_a_created_file(storage: LocalStorage) -> None:
    content = b"x" * 300_000
    done = threading.Event()
    seen = []

    def read() -> None:
        while not done.is_set():
            seen.extend(len(storage.read(entry.path)) for entry in storage.list("d"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        storage.create(f"d/{number}", content)
    done.set()
    reader.join()
    assert set(seen) <= {len(content)}


def test_create_is_durable_file_first_then_its_name(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def recorded_fsync(descriptor: int) -> None:
        steps.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def recorded_link(source: str, target: str) -> None:
        steps.append("link")
        link(source, target)

    storage.create("dir/first", b"")
    monkeypatch.setattr(local.os, "fsync", recorded_fsync)
    monkeypatch.setattr(local.os, "link", recorded_link)
    storage.create("dir/second", b"content")
    assert steps == ["file", "link", "directory"]


def test_stale_checksum_file_goes_with_the_file_it_described(storage: LocalStorage, root: Path) -> None:
    for verb in (lambda: storage.overwrite("f", b"2"), lambda: storage.delete("f"), lambda: storage.open_output("f").close()):
        (root).mkdir(exist_ok=True)
        (root / "f").write_bytes(b"1")
        (root / ".f.crc").write_bytes(b"crc")
        verb()
        assert not (root / ".f.crc").exists()


def test_create_removes_an_orphaned_checksum_file_but_keeps_that_of_an_existing_file(storage: LocalStorage, root: Path) -> None:
    root.mkdir()
    (root / ".new.crc").write_bytes(b"crc")
    storage.create("new", b"1")
    assert not (root / ".new.crc").exists()
    (root / ".new.crc").write_bytes(b"crc")
    with pytest.raises(StoredFileExistsError):
        storage.create("new", b"2")
    assert (root / ".new.crc").exists()


def test_links_that_leave_the_root_are_neither_listed_nor_followed(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("keep")
    root.mkdir()
    (root / "dir_link").symlink_to(outside)
    (root / "file_link").symlink_to(outside / "secret")
    (root / "broken").symlink_to(root / "nothing")
    assert storage.list() == []
    assert storage.walk() == []
    for attempt in (
        lambda: storage.read("file_link"),
        lambda: storage.read("dir_link/secret"),
        lambda: storage.delete("dir_link/secret"),
        lambda: storage.delete_tree("dir_link/secret"),
        lambda: storage.create("dir_link/new", b""),
        lambda: storage.overwrite("file_link", b""),
        lambda: storage.open_output("file_link"),
        lambda: storage.head("file_link"),
    ):
        with pytest.raises(UnsafePathError):
            attempt()
    assert (outside / "secret").read_text() == "keep"
    assert os.listdir(outside) == ["secret"]


def test_deleting_a_link_or_a_tree_with_links_removes_the_link_only(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("keep")
    (root / "tree").mkdir(parents=True)
    (root / "tree" / "link").symlink_to(outside)
    (root / "link").symlink_to(outside)
    (root / "file_link").symlink_to(outside / "secret")
    storage.delete_tree("tree")
    storage.delete_tree("link")
    assert storage.delete("file_link")
    assert os.listdir(root) == []
    assert (outside / "secret").read_text() == "keep"


def test_links_to_files_inside_the_root_are_listed_and_those_to_directories_not(storage: LocalStorage, root: Path) -> None:
    storage.create("a/file", b"12")
    (root / "a" / "up").symlink_to(root)
    (root / "alias").symlink_to(root / "a" / "file")
    assert [(entry.path, entry.size) for entry in storage.walk()] == [("a/file", 2), ("alias", 2)]
    assert [entry.name for entry in storage.list("a")] == ["file"]


def test_root_that_is_a_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    storage = LocalStorage(str(tmp_path / "link"))
    storage.create("a/file", b"1")
    assert [entry.path for entry in storage.walk()] == ["a/file"]
    assert (tmp_path / "real" / "a" / "file").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EMFILE, errno.EROFS, errno.EIO])
def test_failing_link_is_a_storage_error_and_leaves_nothing(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def failing(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    storage.create("d/other", b"")
    monkeypatch.setattr(local.os, "link", failing)
    with pytest.raises(StorageError) as caught:
        storage.create("d/file", b"content")
    assert caught.value.context["path"] == "d/file"
    assert not isinstance(caught.value, (StoredFileExistsError, StoredFileNotFoundError))
    assert os.listdir(root / "d") == ["other"]


def test_disk_full_while_the_content_is_written_leaves_nothing(storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (root / "d").mkdir(parents=True)
    monkeypatch.setattr(local.os, "fsync", full)
    with pytest.raises(StorageError, match="disk is full"):
        storage.create("d/file", b"content")
    assert os.listdir(root / "d") == []


def test_error_of_an_arrow_writer_becomes_a_storage_error() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    caught = pytest.raises(StorageError, match="disk is full")
    with caught, as_storage_errors("write", "full", "/dev"), LocalStorage("/dev").open_output("full") as output:
        output.write(b"x" * 100_000)


def test_link_answered_with_exists_after_it_was_applied_is_a_success(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def applied_twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(local.os, "link", applied_twice)
    storage.create("file", b"content")
    assert storage.read("file") == b"content"


@pytest.mark.parametrize("text", ["file:///data/t", "file:/data/t", "/data/t/", "/data/x/../t"])
def test_root_is_an_absolute_path(text: str) -> None:
    storage = LocalStorage(text)
    assert storage.root == "/data/t"
    assert storage.uri() == "file:///data/t"
    assert storage.uri("a=b%20c/d e") == "file:///data/t/a=b%20c/d e"
    assert storage.local_path("x") == "/data/t/x"


def test_uri_of_another_scheme_is_refused() -> None:
    with pytest.raises(StorageError, match="s3://"):
        LocalStorage("s3://bucket/table")


def test_storage_is_picklable_and_equal_after(storage: LocalStorage) -> None:
    assert pickle.loads(pickle.dumps(storage)) == storage


def test_a_listing_is_of_one_moment_while_files_go(storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What archiving removes goes from old to new: a listing that had the oldest file and not the next one would be of no moment."""
    names = [f"{number}.commit" for number in range(4)]
    for name in names:
        storage.create(name, b"x")
    (root / "link.commit").symlink_to(root / "nowhere")
    look, gone = local._status, list[str]()

    def looked_at(entry: os.DirEntry[str]) -> os.stat_result | None:
        """After the first file was looked at, it goes, and then another one."""
        found = look(entry)
        if not gone:
            gone.extend([entry.name, next(name for name in names if name != entry.name)])
            for name in gone:
                os.unlink(root / name)
        return found

    monkeypatch.setattr(local, "_status", looked_at)
    assert [entry.path for entry in storage.list()] == [name for name in names if name not in gone]
    assert len(gone) == 2


def test_directory_removed_between_listing_and_use_is_no_error(storage: LocalStorage, root: Path) -> None:
    storage.create("a/file", b"")
    storage.delete_tree("a")
    assert storage.list("a") == []
    storage.delete_tree("a")


def test_a_directory_that_comes_between_look_and_rename_is_there_already(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.create("a/file", b"one")
    storage.create("b/file", b"two")
    monkeypatch.setattr(local.ospath, "lexists", lambda path: False)
    with pytest.raises(StoredFileExistsError):
        storage.rename_tree("a", "b")


@pytest.mark.parametrize("verb", ["create", "overwrite"])
def test_a_file_is_made_though_its_directory_is_taken_for_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """As `delete_empty` of another process does it, once before and once after the temporary file is made."""
    storage, make, link = LocalStorage(str(tmp_path)), local._make_directories, local._remove_checksum
    times = iter((True, False, False))

    def taken_when_made(directory: str) -> None:
        make(directory)
        if next(times):
            storage.delete_empty("a")

    published = iter((True, False))

    def taken_when_published(full: str) -> None:
        link(full)
        if next(published):
            storage.delete_empty("a")

    monkeypatch.setattr(local, "_make_directories", taken_when_made)
    monkeypatch.setattr(local, "_remove_checksum", taken_when_published)
    getattr(storage, verb)("a/b/file", b"content")
    assert storage.read("a/b/file") == b"content"
