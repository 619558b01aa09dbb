"""What buckets can be like: full, closed, elsewhere, versioned, crowded, with another clock. Either it works or it is said what to do.

LAKEHOUSE_OBJECTS says how many other objects are beside the tables (2,000; 100,000 take some minutes to make).
"""

from __future__ import annotations

import os
import urllib.request
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import LakehouseError, LockTimeoutError, StorageError, TimelineError
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.verify import verify
from tests.object_store.dbt_store import Store, s3_store
from tests.object_store.proxy import Proxy, options, proxy

__all__ = ["proxy", "s3_store"]
KINDS = pytest.mark.parametrize("kind", ["cow", "mor"])
OTHERS = int(os.environ.get("LAKEHOUSE_OBJECTS", "2000"))


def rows(numbers: range, value: int) -> pa.Table:
    keys, parts = [f"k{number}" for number in numbers], [f"p{number % 3}" for number in numbers]
    return pa.table({"id": keys, "part": parts, "n": [value] * len(numbers)})


def made(lake: Lakehouse, kind: str) -> HoodieTable:
    table = lake.create_table("s.t", schema=rows(range(1), 0).schema, record_key=["id"], partition_by=["part"], table_type=kind)
    table.bulk_insert(rows(range(9), 0))
    return table


def values(table: HoodieTable) -> dict[str, int]:
    read = table.to_arrow(["id", "n"])
    return dict(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))


BEFORE = {f"k{number}": 0 for number in range(9)}
AFTER = {**BEFORE, "k0": 1, "k1": 1}
REFUSED = {
    "full": ("refuse 507 InsufficientStorage", "no room left"),
    "no more keys": ("refuse 403 AccessDenied", "access is denied"),
    "expired": ("refuse 400 ExpiredToken", "access is denied"),
    "another region": ("refuse 301 PermanentRedirect", "another region"),
    "wrong clock": ("refuse 403 RequestTimeTooSkewed", "clock"),
}


def from_the_nth(count: int, fault: str, changes: Callable[[str], bool]) -> Callable[[str, str], str]:
    """The fault for each request that changes something, from one on."""
    asked = [0]

    def found(method: str, path: str) -> str:
        asked[0] += changes(method)
        return fault if changes(method) and asked[0] > count else ""

    return found


CASES = [f"{condition}, {kind}, after {count}" for condition in REFUSED for kind in ("cow", "mor") for count in (0, 1, 4, 6, 7)]


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_takes_no_more_leaves_the_rows_and_the_way_on(s3_store: Store, proxy: Proxy, case: str) -> None:
    """So many requests that change something are carried out before it: up to the lock, the instant, markers, files."""
    condition, kind, after = case.split(", ")
    count, (fault, remedy) = int(after.removeprefix("after ")), REFUSED[condition]
    place = s3_store.place(uuid.uuid4().hex)
    made(Lakehouse(place, storage_options=s3_store.options), kind)
    table = Lakehouse(place, storage_options=options(s3_store, proxy)).table("s.t")
    proxy.fault = from_the_nth(count, fault, lambda method: method in ("PUT", "POST", "DELETE"))
    with pytest.raises(LakehouseError, match=remedy) as caught:
        table.upsert(rows(range(2), 1))
    assert not any(secret.decode() in str(caught.value) for secret in s3_store.secrets)
    assert values(table) == BEFORE
    proxy.fault = lambda method, path: ""
    table.upsert(rows(range(2), 1))
    assert values(table) == AFTER
    assert verify(table.state).findings == ()


@KINDS
def test_a_bucket_with_versions(s3_store: Store, kind: str) -> None:
    """What was deleted or replaced is no part of the table, whatever the bucket keeps of it."""
    if s3_store.asks:
        pytest.skip("this server keeps no versions")
    bucket = f"versions-{uuid.uuid4().hex[:12]}"
    endpoint = s3_store.endpoint
    on = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    for path, body in ((bucket, None), (f"{bucket}?versioning", on)):
        asked = urllib.request.Request(f"{endpoint}/{path}", data=body, headers={"Content-Type": "application/xml"}, method="PUT")
        urllib.request.urlopen(asked).close()
    lake = Lakehouse(f"s3://{bucket}/lake", storage_options=s3_store.options)
    table = made(lake, kind)
    table.savepoint(name="kept")
    table.upsert(rows(range(2), 1))
    assert values(table) == AFTER
    last = table.delete(pa.table({"id": ["k5"]})).instant
    assert last is not None
    table.rollback(last)
    assert values(table) == AFTER
    table.restore("kept")
    assert values(table) == BEFORE
    table.upsert(rows(range(2), 1))
    assert values(table) == AFTER
    assert verify(table.state).findings == ()
    lake.drop_table("s.t")
    assert lake.tables("s") == []
    assert values(made(lake, kind)) == BEFORE


def test_other_objects_beside_and_in_a_warehouse_cost_nothing(s3_store: Store, proxy: Proxy) -> None:
    """They are no tables and no files of any, and an action asks for no more because of them, but for pages of the schema's listing."""
    place = s3_store.place(uuid.uuid4().hex)
    lake = Lakehouse(place, storage_options=options(s3_store, proxy))
    table = made(lake, "cow")

    def asked() -> list[int]:
        opened = Lakehouse(place, storage_options=options(s3_store, proxy)).table("s.t")
        actions: list[Callable[[], object]] = [opened.to_arrow, lambda: opened.upsert(rows(range(2), 1)), lambda: lake.tables("s")]
        return [len(proxy.requests(action)) for action in actions]

    asked()
    before = asked()
    other = ObjectStorage.at(place, s3_store.options)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: other.create(f"s/{number % 7}-landing/{number}.csv", b"1"), range(OTHERS)))
    assert asked() == [before[0], before[1], before[2] + 7]
    assert values(table) == AFTER
    assert verify(table.state).findings == ()
    assert lake.tables("s") == ["s.t"]


@pytest.mark.parametrize(("seconds", "kind"), [(-20, "mor"), (-3, "mor"), (3, "cow"), (20, "cow")])
def test_clocks_that_are_apart(s3_store: Store, proxy: Proxy, seconds: int, kind: str) -> None:
    """The store's clock is so much ahead of this machine's: writes go on, and a lock that is held is not taken for one that is over."""
    place = s3_store.place(uuid.uuid4().hex)
    proxy.ahead = timedelta(seconds=seconds)
    lake = Lakehouse(place, storage_options=options(s3_store, proxy))
    table = made(lake, kind)
    table.upsert(rows(range(2), 1))
    assert values(table) == AFTER
    with TableLock(table.storage), ThreadPoolExecutor(1) as pool:
        other = Lakehouse(place, storage_options=options(s3_store, proxy), options={"hoodie.write.lock.wait_time_ms": "1500"}).table("s.t")
        with pytest.raises(LockTimeoutError):
            pool.submit(other.upsert, rows(range(2), 2)).result()
    assert values(table) == AFTER
    assert verify(table.state).findings == ()


@pytest.mark.parametrize(("seconds", "kind"), [(-100, "mor"), (-400, "cow"), (400, "cow")])
def test_clocks_that_are_too_far_apart_are_refused(s3_store: Store, proxy: Proxy, seconds: int, kind: str) -> None:
    place = s3_store.place(uuid.uuid4().hex)
    table = made(Lakehouse(place, storage_options=s3_store.options), kind)
    proxy.ahead = timedelta(seconds=seconds)
    with pytest.raises(TimelineError, match="clock"):
        Lakehouse(place, storage_options=options(s3_store, proxy)).table("s.t").bulk_insert(rows(range(100, 102), 1))
    assert values(table) == BEFORE


def test_a_missing_bucket_is_said_by_every_way_in(s3_store: Store) -> None:
    lake = Lakehouse(f"{s3_store.scheme}://no-such-bucket-here/lake", storage_options=s3_store.options)
    actions: list[Callable[[], object]] = [lambda: made(lake, "cow"), lambda: lake.create_schema("s"), lambda: lake.table("s.t")]
    for action in actions:
        with pytest.raises(StorageError, match="no such bucket"):
            action()
