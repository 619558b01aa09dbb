"""What a commit touched, as far as it concerns a write that read the table before."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse_engine.commit.expected import Touched, touched_by
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.write_stats import HoodieWriteStat, WriteOperationType

UPSERT, INSERT = WriteOperationType.UPSERT, WriteOperationType.INSERT


def stat(**numbers: Any) -> HoodieWriteStat:
    return HoodieWriteStat(file_id="a-0", path="p/a", partition_path="p", **numbers)


def touched(operation: WriteOperationType, *stats: HoodieWriteStat, replaced: tuple[str, ...] = ()) -> Touched:
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(replaced, ("a-0",))
    written: dict[str, tuple[HoodieWriteStat, ...]] = {"p": stats, "empty": ()}
    return touched_by(
        HoodieCommitMetadata(partition_to_write_stats=written, operation_type=operation, partition_to_replace_file_ids=groups)
    )


@pytest.mark.parametrize(
    ("numbers", "may_take"),
    [
        ({"num_inserts": 2}, False),
        ({"num_update_writes": 2}, False),
        ({"num_deletes": 1}, True),
        ({"log_version": 1, "num_update_writes": 1}, True),
        ({"log_version": 1, "num_deletes": 1}, True),
        ({"log_version": 1, "num_inserts": 1}, False),
    ],
)
def test_deleted_rows_are_taken_and_logged_updates_may_be_deletions(numbers: dict[str, int], *, may_take: bool) -> None:
    found = touched(UPSERT, stat(num_inserts=1), stat(**numbers))
    assert (found.partitions, found.taken_from) == (frozenset("p"), frozenset("p" if may_take else ""))


def test_replaced_partitions_lose_rows() -> None:
    found = touched(INSERT, stat(num_inserts=1), replaced=("q",))
    assert (found.partitions, found.taken_from) == (frozenset("pq"), frozenset("q"))
    assert found.within(frozenset("qr")) == frozenset("q")
    assert found.within(None) == frozenset("pq")


@pytest.mark.parametrize(
    ("operation", "numbers", "adds"),
    [(UPSERT, {"num_inserts": 1}, True), (UPSERT, {"num_update_writes": 1}, False), (INSERT, {"num_inserts": 1}, False)],
)
def test_an_upsert_that_stores_new_rows_looked_them_up(operation: WriteOperationType, numbers: dict[str, int], *, adds: bool) -> None:
    assert touched(operation, stat(**numbers)).adds_unfound is adds
