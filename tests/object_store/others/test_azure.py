"""What Azure alone has: tokens with fewer rights, and names that it changes."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import StorageError, StoredFileNotFoundError, UnsafePathError
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.storage.objects.store import ObjectStorage
from tests.object_store.dbt_store import Store
from tests.object_store.emulators import container_sas

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"], "n": [1, 2]})


def with_token(store: Store, permissions: str, until: str = "2099-01-01T00:00:00Z") -> dict[str, str]:
    told = {name: value for name, value in store.options.items() if name != "account_key"}
    return {**told, "sas_token": container_sas(store.bucket, permissions, until)}


def made(place: str, options: dict[str, str]) -> Lakehouse:
    lake = Lakehouse(place, storage_options=options)
    lake.create_table("s.t", schema=ROWS.schema, record_key=["id"], partition_by=["part"], table_type="mor").upsert(ROWS)
    return lake


def test_a_token_with_the_rights_that_are_documented_is_enough(azure_store: Store) -> None:
    lake = made(azure_store.place(uuid.uuid4().hex), with_token(azure_store, "rwdlc"))
    table = lake.table("s.t")
    table.savepoint(name="kept")
    table.upsert(ROWS.set_column(2, "n", pa.array([3, 4])))
    table.compact()
    assert table.to_arrow(["id", "n"]).sort_by("id")["n"].to_pylist() == [3, 4]
    table.restore("kept")
    assert table.to_arrow(["id", "n"]).sort_by("id")["n"].to_pylist() == [1, 2]
    lake.clone("s.t", "s.u")
    assert lake.drop_table("s.t")
    assert lake.table("s.u").to_arrow(["id"]).sort_by("id")["id"].to_pylist() == ["a", "b"]


def refused(store: Store) -> dict[str, tuple[dict[str, str], Callable[[ObjectStorage], object]]]:
    return {
        "no right to write": (with_token(store, "rl"), lambda storage: storage.create("new", b"1")),
        "no right to replace": (with_token(store, "rl"), lambda storage: storage.overwrite("there", b"2")),
        "no right to delete": (with_token(store, "rwlc"), lambda storage: storage.delete_all(["there", "absent"])),
        "no right to list": (with_token(store, "rwdc"), lambda storage: storage.walk()),
        "no right to read": (with_token(store, "wdlc"), lambda storage: storage.read("there")),
        "expired": (with_token(store, "rwdlc", "2020-01-01T00:00:00Z"), lambda storage: storage.read("there")),
        "another key": ({**store.options, "account_key": "d3Jvbmc="}, lambda storage: storage.read("there")),
    }


@pytest.mark.parametrize(
    "case",
    ["no right to write", "no right to replace", "no right to delete", "no right to list", "no right to read", "expired", "another key"],
)
def test_what_a_token_may_not_is_said_with_the_remedy_and_without_it(azure_store: Store, case: str) -> None:
    place = azure_store.place(uuid.uuid4().hex)
    storage_for(place, azure_store.options).create("there", b"1")
    options, act = refused(azure_store)[case]
    with pytest.raises(StorageError, match="access is denied; check the credentials") as caught:
        act(ObjectStorage.at(place, options))
    assert not isinstance(caught.value, StoredFileNotFoundError)
    secrets = [secret.decode() for secret in azure_store.secrets] + [options.get("sas_token", "sig=").partition("sig=")[2] or "d3Jvbmc="]
    assert not [secret for secret in secrets if secret in str(caught.value)]
    assert storage_for(place, azure_store.options).read("there") == b"1"


def test_a_token_that_is_revoked_leaves_the_table_as_it_was(azure_store: Store) -> None:
    place = azure_store.place(uuid.uuid4().hex)
    before = made(place, dict(azure_store.options)).table("s.t").to_arrow().sort_by("id")
    table = Lakehouse(place, storage_options=with_token(azure_store, "rl")).table("s.t")
    assert table.to_arrow().sort_by("id") == before
    with pytest.raises(StorageError, match="access is denied"):
        table.upsert(ROWS)
    again = Lakehouse(place, storage_options=azure_store.options).table("s.t")
    assert again.to_arrow().sort_by("id") == before
    again.delete(pa.table({"id": ["a"]}))
    assert again.to_arrow(["id"])["id"].to_pylist() == ["b"]


def test_a_partition_that_azure_would_call_otherwise_is_refused_and_nothing_is_left(azure_store: Store) -> None:
    table = made(azure_store.place(uuid.uuid4().hex), dict(azure_store.options)).table("s.t")
    before = table.to_arrow().sort_by("id")
    with pytest.raises(UnsafePathError, match="ends with a dot"):
        table.upsert(pa.table({"id": ["c"], "part": ["v."], "n": [1]}))
    assert table.to_arrow().sort_by("id") == before
    table.upsert(pa.table({"id": ["c"], "part": ["v.1"], "n": [1]}))
    assert table.to_arrow(["id"]).sort_by("id")["id"].to_pylist() == ["a", "b", "c"]


def test_a_listing_tells_the_tags_that_a_look_tells(azure_store: Store) -> None:
    """They stand for the content of a file in what this process remembers."""
    storage = ObjectStorage.at(azure_store.place(uuid.uuid4().hex), azure_store.options)
    storage.create("a/file", b"1")
    found = storage.head("a/file")
    assert found is not None
    assert found.tag
    assert storage.list("a") == [found]
    assert storage.walk() == [found]
