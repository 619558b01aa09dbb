"""What every storage promises, of one in a bucket; and that the server keeps what this rests on."""

from __future__ import annotations

import multiprocessing
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import OptionError, StorageError, StoredFileExistsError, UnknownOptionError, UnsafePathError
from lakehouse_engine.storage.locations import storage_below, storage_for
from lakehouse_engine.storage.objects.store import ObjectStorage
from tests.contracts import test_storage as contract
from tests.object_store.dbt_store import Store, s3_store

__all__ = ["s3_store"]
WRONG = "d3Jvbmc="
"""A key by its form."""

WITHOUT = {
    "test_sync_of_an_absent_file_is_an_error": "an object is durable once it is there, and nothing is asked of the store",
    "test_odd_names_are_kept_as_they_are": "but for control characters, below",
    "test_renamed_tree_is_under_the_new_name_alone": "there is no rename",
    "test_exchanged_trees_have_traded_places": "there is no rename",
    "test_exchange_with_a_tree_that_is_missing_raises_and_changes_nothing": "there is no rename",
    "test_rename_of_a_missing_tree_or_onto_a_name_that_is_taken_raises_and_changes_nothing": "there is no rename",
}
globals().update({name: test for name, test in vars(contract).items() if name.startswith("test_") and name not in WITHOUT})


@pytest.fixture
def storage(s3_store: Store) -> ObjectStorage:
    return ObjectStorage.at(s3_store.place(f"c-{uuid.uuid4().hex}"), s3_store.options)


def test_what_is_left_out_of_the_contract_is_there() -> None:
    assert set(WITHOUT) <= set(vars(contract))


@pytest.mark.parametrize("name", ["with space", "a=b%2Fc", "ünïcode-日本", "semi;colon'\"", "back\\slash", "#?&"])
def test_odd_names_are_kept(storage: ObjectStorage, name: str) -> None:
    if storage.root.startswith("az:") and "\\" in name:
        pytest.skip("to Azure it is another name, which is refused: others/test_azure.py")
    contract.test_odd_names_are_kept_as_they_are(storage, name)


def test_control_characters_are_refused(storage: ObjectStorage) -> None:
    with pytest.raises(UnsafePathError, match="control character"):
        storage.create("new\nline", b"1")


def test_nothing_is_moved(storage: ObjectStorage) -> None:
    storage.create("a/file", b"1")
    for move in (storage.rename_tree, storage.exchange_trees):
        with pytest.raises(StorageError, match="no rename"):
            move("a", "b")
    assert storage.read("a/file") == b"1"


def test_of_many_that_replace_one_content_one_does(storage: ObjectStorage) -> None:
    """A counter that nobody's step is lost of, as the lock needs it."""
    storage.create("counter", b"0")

    def count(steps: int) -> None:
        while steps:
            found = storage.read_tagged("counter")
            assert found is not None
            steps -= storage.put_tagged("counter", str(int(found[0]) + 1).encode(), found[1]) is not None

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(count, [10] * 8))
    assert storage.read("counter") == b"80"
    assert storage.put_tagged("counter", b"x", {"e_tag": '"no such tag"'}) is None
    assert storage.put_tagged("counter", b"x", None) is None
    assert storage.put_tagged("absent", b"x", {"e_tag": '"no such tag"'}) is None
    assert storage.read_tagged("absent") is None


def test_creating_twice_with_one_content_has_one_winner(storage: ObjectStorage) -> None:
    """The file of an instant that is requested is empty, whoever makes it: content does not tell whose it is."""

    def create(_: int) -> bool:
        try:
            storage.create("20260101.commit.requested", b"")
        except StoredFileExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(create, range(16))) == 1


def test_markers_of_directories_are_no_files(storage: ObjectStorage, s3_store: Store) -> None:
    import obstore

    storage.create("t/part/file", b"1")
    for marker in ("t/", "t/part/", "t/empty/"):
        obstore.put(storage._store(), f"{storage._prefix}/{marker}", b"")
    assert [(entry.path, entry.is_directory) for entry in storage.list("t") if entry.name == "part"] == [("t/part", True)]
    assert "t/part" not in [entry.path for entry in storage.walk("t")]
    storage.delete_tree("t")
    assert storage.head("t") is None


def test_many_objects_are_listed_and_deleted(storage: ObjectStorage) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: storage.overwrite(f"t/{number:05}", b""), range(2100)))
    assert len(storage.list("t")) == len(storage.walk()) == 2100
    storage.delete_tree("t")
    assert storage.walk() == []


def test_what_is_not_there_is_deleted_with_the_rest(storage: ObjectStorage) -> None:
    """More than one request takes (Azure: 256), with one that is not there in each."""
    names = [f"t/{number:03}" for number in range(600)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda name: storage.create(name, b"") if not name.endswith("50") else None, [*names, "t"]))
    storage.delete_all(["absent", *names, "absent too"])
    assert storage.has_object("t")
    assert [entry.path for entry in storage.walk()] == ["t"]
    storage.delete_all(["absent"])
    storage.delete_tree("t")
    storage.delete_tree("t")
    assert storage.walk() == []


def test_it_goes_to_other_processes_with_its_options_and_shows_them_nowhere(storage: ObjectStorage, s3_store: Store) -> None:
    storage.create("file", b"1")
    again = pickle.loads(pickle.dumps(storage))
    assert again == storage
    assert storage_below(again, "below").uri() == f"{storage.root}/below"
    assert again.read("file") == b"1"
    assert not [secret for secret in s3_store.secrets if secret.decode() in f"{storage!r} {storage}"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"endpoint": "http://127.0.0.1:1"}, "cannot be reached"),
        ({"bucket": "no-such-bucket-here"}, "no such bucket"),
    ],
)
def test_what_is_wrong_is_said_with_the_remedy_and_without_keys(s3_store: Store, change: dict[str, str], message: str) -> None:
    options = {**s3_store.elsewhere(change.get("endpoint", s3_store.endpoint)), "timeout": "5s"}
    storage = storage_for(replace(s3_store, bucket=change.get("bucket", s3_store.bucket)).place("x"), options)
    with pytest.raises(StorageError, match=message) as caught:
        storage.create("a", b"1")
    assert not any(secret.decode() in str(caught.value) for secret in s3_store.secrets)


def test_wrong_keys_are_said(s3_store: Store) -> None:
    if not s3_store.asks:
        pytest.skip("the server takes any key")
    storage = storage_for(s3_store.place("x"), {**s3_store.options, s3_store.secret_names[-1]: WRONG})
    with pytest.raises(StorageError, match="access is denied"):
        storage.list()


@pytest.mark.parametrize(
    ("location", "options", "error", "message"),
    [
        ("s3://", {}, OptionError, "names no bucket"),
        ("ftp://host/x", {}, OptionError, "no storage for ftp"),
        ("/a/directory", {"region": "x"}, OptionError, "a directory has no storage_options"),
        ("s3://b/x", {"acces_key_id": "x"}, UnknownOptionError, "'acces_key_id'"),
        ("s3://b/x", {"allow_http": "yes"}, OptionError, "true or false"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(
    location: str, options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        storage_for(location, options)


@pytest.mark.parametrize("given", [{}, {"timeout": "20s"}])
def test_the_environment_tells_what_options_do_not(s3_store: Store, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    for name, value in s3_store.environment.items():
        monkeypatch.setenv(name, value)
    storage = storage_for(s3_store.place(uuid.uuid4().hex), given)
    storage.create("file", b"1")
    assert storage.read("file") == b"1"


def test_an_endpoint_without_encryption_is_allowed_by_name_only(s3_store: Store) -> None:
    options = {name: value for name, value in s3_store.options.items() if name != "allow_http"}
    with pytest.raises(StorageError, match="allow_http: true"):
        storage_for(s3_store.place(uuid.uuid4().hex), options).read("file")


def _read(place: str, options: dict[str, str]) -> str:
    try:
        return storage_for(place, options).read("file").decode()
    except StorageError as error:
        return str(error)


def test_a_forked_process_is_told_instead_of_waiting_for_ever(storage: ObjectStorage, s3_store: Store) -> None:
    storage.create("file", b"1")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert "spawn" in pool.apply_async(_read, (storage.root, dict(s3_store.options))).get(60)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(_read, (storage.root, dict(s3_store.options))).get(60) == "1"


@pytest.mark.parametrize("given", ["CANARY", {"secret_access_key": b"CANARY"}, {"secret_access_key": "CANARY\0"}])
def test_options_of_a_wrong_kind_are_refused_without_their_values(given: object) -> None:
    with pytest.raises(OptionError, match="storage_options") as caught:
        Lakehouse("s3://b/x", storage_options=given)  # type: ignore[arg-type]
    assert "CANARY" not in str(caught.value)
