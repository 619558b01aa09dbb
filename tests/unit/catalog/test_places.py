"""Tables in buckets are dropped one object after the other, and no reader finds half of one."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.catalog.places import take_apart
from lakehouse_engine.errors import TableNotFoundError
from lakehouse_engine.storage.faults import FaultyStorage, SimulatedCrash
from lakehouse_engine.storage.locations import storage_below
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.timeline.config_store import BACKUP, COPY, PROPERTIES, ConfigStore
from tests.crash.requests import Bucket, buckets

ROWS = pa.table({"id": [1, 2, 3]})
NAME = RelationName("s", "t")


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with buckets():
        yield Bucket()


def warehouse(bucket: Bucket) -> ObjectStorage:
    """With a table, of which a change of properties was interrupted."""
    storage = bucket.storage
    Lakehouse(storage.root, storage_options=dict(storage.options)).create_table("s.t", schema=ROWS.schema, record_key=["id"]).insert(ROWS)
    storage.overwrite(f"{NAME.path}/{BACKUP}", storage.read(f"{NAME.path}/{PROPERTIES}"))
    return storage


def test_a_drop_that_dies_anywhere_leaves_all_of_the_table_or_none(bucket: Bucket) -> None:
    whole = FaultyStorage(warehouse(bucket))
    take_apart(whole, NAME)
    assert len(whole.mutations) >= len((BACKUP, COPY, PROPERTIES)) + 2
    seen = []
    for call in range(1, len(whole.mutations) + 1):
        storage = warehouse(bucket)
        with pytest.raises(SimulatedCrash):
            take_apart(FaultyStorage(storage, call), NAME)
        place = storage_below(bucket.storage, NAME.path)
        seen.append(place.head(PROPERTIES) is not None)
        if seen[-1]:
            assert HoodieTable(place).to_arrow().equals(ROWS)
            take_apart(storage, NAME)
        else:
            with pytest.raises(TableNotFoundError):
                HoodieTable(place)
            assert ConfigStore(place).copy() is None, "a repair would make a table again of what is left"
            Lakehouse(storage.root, storage_options=dict(storage.options)).create_table("s.t", schema=ROWS.schema, record_key=["id"])
            take_apart(storage, NAME)
    assert (seen[0], seen[-1]) == (True, False)
