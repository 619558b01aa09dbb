"""Uploads that nobody completes: they are found, and removed when they are old enough, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
import uuid

import pytest
from click.testing import CliRunner

from lakehouse_engine import Lakehouse
from lakehouse_engine.cli.main import cli
from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.storage.objects.uploads import abort_uploads, unfinished_uploads
from tests.object_store.dbt_store import Store, s3_store
from tests.object_store.proxy import Proxy, options, proxy

__all__ = ["proxy", "s3_store"]

KILLED = """
import os, sys, json
from lakehouse_engine.storage.objects.store import ObjectStorage
output = ObjectStorage.at(sys.argv[1], json.loads(sys.argv[2])).open_output("s/t/day=1/left.parquet")
for _ in range(20):
    output.write(bytes(1024 * 1024))
print("sent", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(s3_store: Store) -> str:
    return s3_store.place(uuid.uuid4().hex)


def killed_writer(store: Store, place: str) -> None:
    """A process that is killed when it has sent some parts of a file."""
    command = [sys.executable, "-c", KILLED, place, json.dumps(dict(store.options))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"sent\n"
        writer.kill()


def is_old(store: Store) -> int:
    """Hours after which this server's uploads count as old: moto dates all of them to 2010."""
    return 24 if not store.asks else 0


def test_what_a_killed_writer_sent_is_found_and_removed(s3_store: Store, place: str) -> None:
    storage = ObjectStorage.at(place, s3_store.options)
    storage.create("s/t/day=1/whole.parquet", b"rows")
    killed_writer(s3_store, place)
    assert [entry.path for entry in storage.walk()] == ["s/t/day=1/whole.parquet"]
    lake = Lakehouse(place, storage_options=s3_store.options)
    found = lake.abort_uploads(older_than_hours=is_old(s3_store), dry_run=True)
    assert [one.path for one in found] == ["s/t/day=1/left.parquet"]
    assert lake.abort_uploads(older_than_hours=10_000_000) == lake.abort_uploads(older_than_hours=2**62) == []
    assert lake.abort_uploads(older_than_hours=is_old(s3_store)) == found
    assert lake.abort_uploads(older_than_hours=0, dry_run=True) == []
    abort_uploads(storage, found)  # somebody else was faster
    assert storage.read("s/t/day=1/whole.parquet") == b"rows"


def begun(store: Store, key: str) -> None:
    asked = urllib.request.Request(f"{store.endpoint}/{store.bucket}/{key}?uploads", method="POST", data=b"")
    urllib.request.urlopen(asked).close()


def test_only_those_below_the_warehouse_however_many_they_are(s3_store: Store, place: str) -> None:
    if s3_store.asks:
        pytest.skip("requests without a signature are refused by this server")
    name = place.rpartition("/")[2]
    for number in range(1100):  # a page has a thousand
        begun(s3_store, f"{name}/s/{number:04d}")
    begun(s3_store, f"{name}-beside/s/t")
    storage = ObjectStorage.at(place, s3_store.options)
    found = unfinished_uploads(storage)
    assert [one.path for one in found] == [f"s/{number:04d}" for number in range(1100)]
    abort_uploads(storage, found[:1099])
    assert [one.path for one in unfinished_uploads(storage)] == ["s/1099"]
    assert len(unfinished_uploads(ObjectStorage.at(f"{place}-beside", s3_store.options))) == 1


def test_one_that_was_begun_now_is_somebody_at_work(s3_store: Store, place: str) -> None:
    """By the store's clock: a server that dates uploads as they come shows them when the time is over."""
    if not s3_store.asks:
        pytest.skip("moto dates all uploads to 2010")
    killed_writer(s3_store, place)
    storage = ObjectStorage.at(place, s3_store.options)
    time.sleep(1.1)
    assert unfinished_uploads(storage) == []
    assert len(unfinished_uploads(storage, 0)) == 1


def test_the_command_shows_them_and_removes_them(s3_store: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_store.environment.items():
        monkeypatch.setenv(name, value)
    killed_writer(s3_store, place)
    command = ["--warehouse", place, "abort-uploads", "--older-than-hours", str(is_old(s3_store))]
    shown = CliRunner().invoke(cli, [*command, "--dry-run", "--json"])
    assert [row["path"] for row in json.loads(shown.output)] == ["s/t/day=1/left.parquet"]
    assert "left.parquet" in CliRunner().invoke(cli, command).output
    assert CliRunner().invoke(cli, command).output == "none\n"


REFUSED = [("refuse 403 AccessDenied", "access is denied"), ("refuse 404 NoSuchBucket", "no such bucket")]


@pytest.mark.parametrize(("fault", "remedy"), REFUSED)
def test_what_the_store_refuses_is_told_with_the_remedy(s3_store: Store, proxy: Proxy, place: str, fault: str, remedy: str) -> None:
    proxy.fault = lambda method, path: fault
    with pytest.raises(StorageError, match=remedy) as caught:
        Lakehouse(place, storage_options=options(s3_store, proxy)).abort_uploads()
    assert not any(secret.decode() in str(caught.value) for secret in s3_store.secrets)
