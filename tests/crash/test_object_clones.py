"""Every request of a clone that changes something in a bucket, met by everything that stores and networks do to requests.

By its name the clone is whole or not there, the source stays as it is, and what is left is gone with the next table of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.places import made_in_place
from lakehouse_engine.errors import (
    LakehouseError,
    LockTimeoutError,
    OptionError,
    TableError,
    TableExistsError,
    TableNotFoundError,
)
from lakehouse_engine.services.clone.service import FILES_KEY, SOURCE_KEY
from lakehouse_engine.storage.faults import SimulatedCrash
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.config_store import PROPERTIES
from tests.crash.harness import at
from tests.crash.requests import FAULTS, Bucket, Fault, Meet, Moment, Process, buckets
from tests.crash.scenarios import SCHEMA, START, batch, open_table

CHANGED = (("a", 2, "x", "a2"), ("e", 1, "y", "e1"))


def lake_of(storage: ObjectStorage) -> Lakehouse:
    return Lakehouse(storage.root, storage_options=dict(storage.options))


def filled(kind: str) -> Bucket:
    """With a table of base files, and for "mor" of logs."""
    bucket = Bucket()
    lake = lake_of(bucket.storage)
    table = lake.create_table("s.t", schema=SCHEMA, record_key=["id"], ordering_fields=["ts"], partition_by=["part"], table_type=kind)
    table.bulk_insert(batch(START))
    table.upsert(batch(CHANGED))
    return bucket


def again(bucket: Bucket) -> Bucket:
    """The same objects in a bucket of its own."""
    return Bucket(bucket.storage)


def rows(lake: Lakehouse, name: str) -> list[dict[str, object]]:
    return lake.table(name).to_arrow(SCHEMA.names).sort_by("id").to_pylist()


def left(lake: Lakehouse, name: str = "u") -> list[str]:
    """Of a table that is not there."""
    lock = f"s/{name}/.hoodie/.locks/table_lock.json"
    return [entry.path for entry in lake.catalog.storage.walk("s") if f"/{name}" in entry.path and entry.path != lock]


def changes(start: Bucket) -> list[str]:
    bucket = again(start)
    process = Process(bucket.store)
    lake_of(bucket.process(process)).clone("s.t", "s.u")
    return process.changes


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_clone_is_whole_or_not_there_whatever_a_request_meets(kind: str, fault: Fault) -> None:
    with buckets():
        start = filled(kind)
        wanted, calls = rows(lake_of(start.storage), "s.t"), changes(start)
        for call, name in enumerate(calls, 1):
            with at(f"{fault}: request {call} of {len(calls)}, {name}"):
                _check(again(start), call, fault, wanted)
    # Of merge-on-read one partition has logs, which are merged.
    assert sum(name.startswith("copy ") and name.endswith(".parquet") for name in calls) == (3 if kind == "cow" else 2)
    assert next(number for number, name in enumerate(calls) if name.endswith(PROPERTIES)) > max(
        number for number, name in enumerate(calls) if name.startswith(("copy ", "complete ")) or name.endswith("commit")
    )


def _check(bucket: Bucket, call: int, fault: Fault, wanted: list[dict[str, object]]) -> None:
    process = Process(bucket.store, call, fault)
    done = False
    with suppress(SimulatedCrash, LakehouseError):
        lake_of(bucket.process(process)).clone("s.t", "s.u")
        done = True
    if fault.moment is not Moment.LATER or _is_excepted(process):
        process.arrive()
    after = lake_of(bucket.storage)
    assert after.exists("s.u") or not done
    if after.exists("s.u"):
        assert rows(after, "s.u") == wanted
        assert after.drop_table("s.u")
    after.clone("s.t", "s.u")
    process.arrive()
    assert rows(lake_of(bucket.storage), "s.u") == wanted
    assert rows(lake_of(bucket.storage), "s.t") == wanted
    after.drop_table("s.u")
    assert left(after) == []


def _is_excepted(process: Process) -> bool:
    """What arrives when a table was made in the place anew is taken for that one's (docs/plan.md), but for its properties and its lock."""
    files = (request.key for request in process.late if "/s/u/" in request.key)
    return any(not key.endswith(PROPERTIES) and "/.locks/" not in key for key in files)


def drop_table(lake: Lakehouse) -> None:
    lake.drop_table("s.u", if_exists=True)


def drop_schema(lake: Lakehouse) -> None:
    lake.drop_schema("s", cascade=True)


@pytest.mark.parametrize("drop", [drop_table, drop_schema])
def test_a_clone_that_was_cut_off_goes_with_a_drop(drop: Callable[[Lakehouse], None]) -> None:
    with buckets():
        start = filled("cow")
        for call in range(1, len(changes(start)) + 1):
            bucket = again(start)
            with pytest.raises(SimulatedCrash):
                lake_of(bucket.process(Process(bucket.store, call, Fault(Meet.DIES_AFTER)))).clone("s.t", "s.u")
            after = lake_of(bucket.storage)
            drop(after)
            assert left(after) == []


def test_a_table_is_made_anew_where_a_clone_was_cut_off() -> None:
    with buckets():
        start = filled("cow")
        for call, name in enumerate(changes(start), 1):
            bucket = again(start)
            with pytest.raises(SimulatedCrash):
                lake_of(bucket.process(Process(bucket.store, call, Fault(Meet.DIES_BEFORE)))).clone("s.t", "s.u")
            after = lake_of(bucket.storage)
            if after.exists("s.u"):
                continue
            table = after.create_table("s.u", schema=SCHEMA, record_key=["id"])
            with at(name):
                assert table.timeline.completed().writes().last() is None
                assert table.storage.walk() != []
                table.insert(batch(CHANGED))
                assert [row["id"] for row in rows(after, "s.u")] == ["a", "e"]


def test_the_commit_says_where_the_clone_is_from_and_the_two_share_nothing() -> None:
    with buckets():
        lake = lake_of(filled("cow").storage)
        kept = lake.clone("s.t", "s.u", as_of="-1")
        assert kept is not None
        table = lake.table("s.u")
        extra = table.state.commit_metadata(table.timeline.completed().writes().last()).extra_metadata
        assert extra[SOURCE_KEY] == "s.t"
        assert extra[FILES_KEY] == "0 linked, 3 copied, 0 merged with their logs"
        wanted = rows(lake, "s.u")
        assert [row["id"] for row in wanted] == ["a", "b", "c", "d"]
        table.delete(pa.table({"id": ["a"], "part": ["x"]}))
        assert len(rows(lake, "s.t")) == 5
        assert lake.drop_table("s.t")
        assert len(rows(lake, "s.u")) == 3


def test_what_is_refused_changes_nothing() -> None:
    with buckets():
        lake = lake_of(filled("cow").storage)
        lake.create_table("s.u", schema=SCHEMA, record_key=["id"])
        lake.catalog.storage.overwrite("s/stray/file", b"mine")
        before = [(entry.path, entry.modified_ms) for entry in lake.catalog.storage.walk() if "/.locks/" not in entry.path]
        with pytest.raises(TableExistsError, match="there already"):
            lake.clone("s.t", "s.u")
        with pytest.raises(TableError, match="no rename; a crash between the two would leave neither; drop the table first"):
            lake.clone("s.t", "s.u", or_replace=True)
        with pytest.raises(TableExistsError, match="s/stray that is no table"):
            lake.clone("s.t", "s.stray")
        with pytest.raises(OptionError):
            lake.clone("s.t", "s.t", or_replace=True)
        assert lake.clone("s.t", "s.u", if_not_exists=True) is None
        assert [(entry.path, entry.modified_ms) for entry in lake.catalog.storage.walk() if "/.locks/" not in entry.path] == before


def test_what_fails_leaves_nothing() -> None:
    with buckets():
        lake = lake_of(filled("cow").storage)
        storage = lake.table("s.t").storage
        storage.delete(next(entry.path for entry in storage.walk("part=z") if entry.path.endswith(".parquet")))
        with pytest.raises(LakehouseError):
            lake.clone("s.t", "s.u")
        assert left(lake) == ["s/.dropped/u.json"]
        assert not lake.exists("s.u")


class _Meanwhile(Process):
    """Another process wants the name when the first file is copied."""

    bucket: Bucket
    met: str = ""

    def ask(self, what: str, key: str, send: Callable[[], Any], *, changes: bool = False) -> Any:
        if what.startswith("copy ") and not self.met:
            other = lake_of(self.bucket.storage)
            assert not other.exists("s.u")
            assert other.tables("s") == ["s.t"]
            with pytest.raises(TableNotFoundError):
                other.table("s.u")
            with pytest.raises(TableNotFoundError):
                open_table(storage_below(other.catalog.storage, "s/u")).read(["id"])
            with ThreadPoolExecutor(1) as elsewhere:
                made = elsewhere.submit(_make, other, RelationName("s", "u"))
                with pytest.raises(LockTimeoutError):
                    made.result()
            self.met = what
        return super().ask(what, key, send, changes=changes)


def _make(lake: Lakehouse, name: RelationName) -> None:
    with made_in_place(lake.catalog.storage, name, lock_timeout_ms=50):
        raise AssertionError("two made a table in one place")


def test_nobody_sees_a_clone_that_is_being_made_or_makes_a_table_in_its_place() -> None:
    with buckets():
        bucket = filled("cow")
        process = _Meanwhile(bucket.store)
        process.bucket = bucket
        lake = lake_of(bucket.process(process))
        lake.clone("s.t", "s.u")
        assert process.met
        assert rows(lake_of(bucket.storage), "s.u") == rows(lake, "s.t")
