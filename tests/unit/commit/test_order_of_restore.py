"""A restore takes back what shows after its target: by request in version 6, by completion in versions 8 and 9."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.commit.deletion import delete_files_after
from lakehouse_engine.commit.leftovers.log_owners import LogOwners
from lakehouse_engine.commit.restore.files import find_changes
from lakehouse_engine.errors import ProtectedFileError
from lakehouse_engine.model.order import Order
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table

FIRST, COMPACTION, TARGET = "20260101000000001", "20260101000000003", "20260101000000004"
BY_REQUEST = Order.by_request()
BY_COMPLETION = Order.by_completion({FIRST: "20260101000000002", TARGET: "20260101000000005", COMPACTION: "20260101000000008"})
"""The compaction was requested before the target and completed after it."""
GROUP = "2b0b4ae5-d8ab-4e5e-9b3d-6a1e1a4e2d5c-0"


def base(instant_time: str) -> str:
    return f"p/{GROUP}_0-1-1_{instant_time}.parquet"


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", pa.schema({"id": pa.string()}), record_key=["id"]))
    for time in (FIRST, COMPACTION):
        storage.create(base(time), b"rows")
    return storage


@pytest.mark.parametrize(("order", "gone"), [(BY_REQUEST, []), (BY_COMPLETION, [base(COMPACTION)])])
def test_the_base_file_of_a_compaction_goes_where_it_shows_after_the_target(storage: MemoryStorage, order: Order, gone: list[str]) -> None:
    (changes,) = find_changes(storage, ["p"], order, TARGET, ())
    assert [removal.path for removal in changes.removals] == gone
    assert changes.kept == {base(FIRST), base(COMPACTION)} - set(gone)


def test_a_log_goes_with_a_write_that_shows_after_the_target() -> None:
    owners = LogOwners(frozenset({COMPACTION}))
    assert not owners.only_after(BY_REQUEST, TARGET)
    assert owners.only_after(BY_COMPLETION, TARGET)
    assert not LogOwners(frozenset({COMPACTION, FIRST})).only_after(BY_COMPLETION, TARGET)


def test_no_file_is_deleted_that_does_not_show_after_the_target(storage: MemoryStorage) -> None:
    with pytest.raises(ProtectedFileError, match="or before"):
        delete_files_after(storage, BY_REQUEST, TARGET, [base(COMPACTION)])
    assert delete_files_after(storage, BY_COMPLETION, TARGET, [base(COMPACTION)]) == [base(COMPACTION)]
    assert [entry.path for entry in storage.list("p")] == [base(FIRST)]
