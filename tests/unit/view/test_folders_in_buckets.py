"""In a bucket the listing of the timeline says which folders are beside it; what comes into one later is found with the next listing."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.metadata_table import METADATA_TABLE
from lakehouse_engine.errors import CorruptInstantError, UnsupportedTableError
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.timeline.heartbeats import heartbeat_file
from lakehouse_engine.view.table_state import TableState
from tests.crash.requests import Bucket, Process, buckets
from tests.crash.scenarios import create

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})


class Counting(Process):
    def __init__(self, bucket: Bucket) -> None:
        super().__init__(bucket.store)
        self.asked: list[str] = []

    def ask(self, what, key, send, *, changes=False):  # type: ignore[no-untyped-def]
        self.asked.append(what)
        return super().ask(what, key, send, changes=changes)


@pytest.fixture
def process() -> Iterator[Counting]:
    with buckets():
        yield Counting(Bucket())


@pytest.fixture
def table(process: Counting) -> HoodieTable:
    bucket = Bucket()
    bucket.store = process.store
    storage = bucket.process(process)
    lake = Lakehouse(storage.root, storage_options=dict(storage.options))
    made = lake.create_table("s.t", schema=ROWS.schema, record_key=["id"])
    made.insert(ROWS)
    return made


def test_folders_that_are_not_there_are_not_asked_for(process: Counting, table: HoodieTable) -> None:
    table.upsert(ROWS)
    process.asked.clear()
    table.upsert(ROWS)
    listed = [what.rpartition(".hoodie")[2] for what in process.asked if what.startswith("list ") and "/.hoodie" in what]
    assert [one for one in listed if one.strip("/").partition("/")[0] not in ("", ".aux", ".temp")] == []
    # Before the lock, under it, and for the services that may be due.
    assert sum(one.strip("/") == "" for one in listed) == 3


def test_what_comes_into_a_folder_later_is_found_by_the_next_write(table: HoodieTable) -> None:
    table.upsert(ROWS)
    storage = table.storage
    left = [f"{METADATA_TABLE}/.hoodie/hoodie.properties", heartbeat_file("20200101000000000"), ".hoodie/.temp/20200101000000000.open"]
    for path in left:
        storage.create(path, b"")
    table.upsert(ROWS)
    assert [path for path in left if storage.head(path) is not None] == []


@pytest.mark.parametrize(
    ("path", "said"),
    [(".hoodie/.bucket_index/p/x.hashing_meta", "consistent hashing"), (".hoodie/.schema/1.schemacommit", "history")],
)
def test_what_must_not_be_written_to_is_refused_once_it_is_there(table: HoodieTable, path: str, said: str) -> None:
    table.upsert(ROWS)
    before = table.timeline
    table.storage.create(path, b"{}")
    with pytest.raises(UnsupportedTableError, match=said):
        table.upsert(ROWS)
    assert table.timeline == before


def test_an_archive_that_is_made_later_counts(table: HoodieTable) -> None:
    for _ in range(5):
        table.upsert(ROWS)
    before = table.state
    assert not before.may_have_folder(".hoodie/archived")
    table.clean(retain_commits=1)
    table.archive(min_commits=2, max_commits=3, options={"hoodie.clean.commits.retained": "1"})
    assert table.state.may_have_folder(".hoodie/archived")
    assert table.state.archived_files().boundary
    table.upsert(ROWS)
    assert table.to_arrow(["id", "n"]).sort_by("id").equals(ROWS)


def test_a_completed_write_that_is_torn_is_refused(table: HoodieTable) -> None:
    newest = table.timeline.completed().writes().instants[-1]
    table.storage.overwrite(f".hoodie/{newest.requested_time}.commit", b"")
    with pytest.raises(CorruptInstantError, match="put the file back"):
        table.upsert(ROWS)


def test_a_listing_elsewhere_does_not_say_what_folders_there_are() -> None:
    """A directory may be a link, which no listing shows."""
    storage = MemoryStorage()
    create(storage)
    assert TableState.load(storage).may_have_folder(".hoodie/archived")
