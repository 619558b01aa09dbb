"""Commits that are kept once they were read, and read again where another content is under their name."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from obstore.store import MemoryStore

from lakehouse_engine.errors import CorruptInstantError
from lakehouse_engine.manifest.commits import DecodedCommits
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.objects import store as object_store
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.active import ActiveTimeline
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """A store whose times tell nothing, as two writes within S3's whole seconds."""
    held, told, now = MemoryStore(), ObjectStorage._file, time.time_ns() // 1_000_000
    monkeypatch.setattr(object_store, "_from_url", lambda location, **settings: held)

    def timeless(self: ObjectStorage, meta: Mapping[str, Any]) -> StoredFile:
        return replace(told(self, meta), modified_ms=now)

    monkeypatch.setattr(ObjectStorage, "_file", timeless)
    return ObjectStorage.at(f"s3://bucket-{uuid.uuid4().hex}/t")


def test_what_is_put_in_the_place_of_a_commit_is_read_though_size_and_time_are_the_same(storage: ObjectStorage) -> None:
    create_table(storage, TableSpec(name="t", schema=SCHEMA, record_key=["id"]))
    LocalTable(storage).insert(pa.table({"id": [1]}, SCHEMA))
    commits = DecodedCommits(limit=1 << 20)

    def operation() -> str:
        state = LocalTable(storage).state
        instant = state.timeline.completed().writes().last()
        assert instant is not None
        listed = {entry.path: entry for entry in storage.walk(".hoodie")}
        file = next(entry for path, entry in listed.items() if path.endswith(f"{instant.requested_time}.commit"))
        return str(commits.get(ActiveTimeline(storage, state.format), instant, file).metadata.operation_type)

    assert operation() == operation() == "INSERT"
    path = next(entry.path for entry in storage.walk(".hoodie") if entry.path.endswith(".commit"))
    storage.overwrite(path, storage.read(path).replace(b"INSERT", b"UPSERT"))
    with pytest.raises(CorruptInstantError, match="checksum"):
        operation()
