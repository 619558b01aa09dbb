"""Merge-on-read tables of ours: hudi-rs reads the rows that we read, and both are what a model in memory holds, after each commit of a
mixed load, before and after compactions. While a compaction is pending it leaves out what was written since.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from tests.support.delta_history import COMMITS, KINDS, History, Moment, history
from tests.support.readers import META_COLUMNS, assert_same_rows, first_difference, read_with_hudi_rs

Histories = Callable[[str], History]

READ_BY_HUDI_RS = [name for name in KINDS if not KINDS[name].rewrites]
"""All but those with PartialUpdateAvroPayload, which it refuses."""

INCREMENTAL_BY_HUDI_RS = [name for name in READ_BY_HUDI_RS if name != "evolved_avro"]
"""It takes Avro blocks of before a column was added for partial updates, and fails on their nested columns."""


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Histories:
    """Our table of a kind, made when it is first asked for."""
    warehouse = tmp_path_factory.mktemp("logs")
    return cache(lambda name: history(warehouse, name))


def read(moment: Moment, **query: Any) -> pa.Table:
    return moment.table.to_arrow(meta_columns=True, **query)


def only_commit_time(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in META_COLUMNS if name != "_hoodie_commit_time"])


@pytest.mark.parametrize("name", KINDS)
def test_we_read_the_model_after_each_commit(ours: Histories, name: str) -> None:
    made = ours(name)
    for moment in made.moments:
        assert_same_rows(only_commit_time(read(moment)), moment.rows)
    assert sum(not moment.step.startswith(("scheduled", "compacted")) for moment in made.moments) == COMMITS


@pytest.mark.parametrize("name", KINDS)
def test_we_read_the_model_as_of_every_instant_and_in_every_range(ours: Histories, name: str) -> None:
    made = ours(name)
    model, last = made.built.model, made.moments[-1]
    for instant in model.snapshots:
        stored = only_commit_time(read(last, as_of=instant))
        # As of an instant a table has the columns of then.
        assert_same_rows(stored, made.built.expected(model.snapshot(instant)).select(stored.column_names))
    for begin, end in model.ranges(every=name == "nonpartitioned_avro"):
        rows = only_commit_time(read(last, query="incremental", begin=begin, end=end))
        assert_same_rows(rows, made.built.expected(model.incremental(begin, end)))


@pytest.mark.parametrize("name", READ_BY_HUDI_RS)
def test_hudi_rs_reads_the_same_after_each_commit(ours: Histories, name: str) -> None:
    for moment in ours(name).moments:
        if not moment.pending:
            assert_same_rows(read_with_hudi_rs(moment.path), read(moment))
            assert_same_rows(read_with_hudi_rs(moment.path, read_optimized=True), read(moment, query="read_optimized"))


@pytest.mark.parametrize("name", READ_BY_HUDI_RS)
def test_hudi_rs_reads_the_same_in_time_travel(ours: Histories, name: str) -> None:
    last = ours(name).moments[-1]
    for instant in last.instants:
        stored = read(last, as_of=instant)
        # As of an instant hudi-rs has the columns of today, null in rows of then.
        assert_same_rows(read_with_hudi_rs(last.path, as_of=instant).select(stored.column_names), stored)


@pytest.mark.parametrize("name", INCREMENTAL_BY_HUDI_RS)
def test_hudi_rs_reads_the_same_incrementally(ours: Histories, name: str) -> None:
    last = ours(name).moments[-1]
    for begin, end in [*pairwise(last.instants), ("000", last.instants[5]), (last.instants[2], last.instants[-1])]:
        theirs = read_with_hudi_rs(last.path, begin=begin, end=end)
        assert_same_rows(theirs, read(last, query="incremental", begin=begin, end=end))


@pytest.mark.parametrize("name", READ_BY_HUDI_RS)
def test_hudi_rs_reads_the_rows_of_its_schedule_while_a_compaction_is_pending(ours: Histories, name: str) -> None:
    """It does not look into logs named after the pending compaction, and reads new base files. Documented; 0.5.0."""
    made = ours(name)
    assert_same_rows(read_with_hudi_rs(made.moment("scheduled").path), read(made.moment("scheduled")))
    stale = made.moment("deletes while pending")
    assert first_difference(read_with_hudi_rs(stale.path), read(stale)) is not None
    assert_same_rows(read_with_hudi_rs(made.moment("compacted").path), read(made.moment("compacted")))
