"""Every table that Hudi wrote, read with filters: the rows are those that the filter is true of among all rows, whatever was skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import and_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_read_fixtures import NOT_READ
from tests.support.fixtures import fixtures_root, rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

MOST_COLUMNS = 3


def conditions(rows: pa.Table) -> Iterator[pc.Expression]:
    """About values that are stored, and values beside them; one about a meta column, others about the table's."""
    flat = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    simple = [*[name for name in META_COLUMNS[:1] if name in flat], *[name for name in flat if name not in META_COLUMNS][-MOST_COLUMNS:]]
    for name in simple:
        column, field = rows[name], pc.field(name)
        known = column.drop_null()
        if not len(known):
            yield field.is_null()
            continue
        ordered = known.take(pc.sort_indices(known)) if not pa.types.is_boolean(known.type) else known
        low, middle = ordered[0], ordered[len(ordered) // 2]
        yield ~(field == middle)
        if not pa.types.is_boolean(known.type):
            yield field > middle
            yield field < low
            yield (field <= low) | field.is_null()
    pairs = [(name, rows[name].drop_null()) for name in simple]
    both = [pc.field(name) == known[len(known) // 2] for name, known in pairs if len(known)]
    if both:
        yield reduce(and_, both)


def queries(state: TableState) -> Iterator[Query]:
    times = [write.requested_time for write in state.timeline.completed().writes()]
    yield Query()
    if not times:
        return
    yield Query("read_optimized", times[-1])
    if state.config.populates_meta_fields:
        yield Query("incremental", begin=times[0])


def check(path: Path) -> int:
    state, compared = TableState.load(LocalStorage(str(path))), 0
    meta = state.config.populates_meta_fields
    for query in queries(state):
        every = read_arrow(plan_query(state, query), meta_columns=meta)
        for number, condition in enumerate(conditions(every)):
            # In these tables rows are where they say: paths may be trusted, and need not be.
            options = {"lakehouse.read.trust.partition.paths": number % 2 == 0}
            plan = plan_query(state, replace(query, filters=condition), options)
            assert_same_rows(read_arrow(plan, meta_columns=meta), every.filter(condition), what=f"{query} where {condition}")
            compared += 1
    return compared


READ = [name for name in spark_fixtures() if name not in NOT_READ]


@pytest.mark.parametrize("name", READ)
def test_a_filtered_reading_of_a_table_of_hudi_has_the_rows_that_the_filter_is_true_of(name: str, tmp_path: Path) -> None:
    assert check(unpack_spark_fixture(name, tmp_path)) > 0


@pytest.mark.parametrize("name", [name for name in rs_fixtures() if "v6_" in name])
def test_a_filtered_reading_of_a_table_of_the_hudi_rs_set_has_the_rows_that_the_filter_is_true_of(name: str, tmp_path: Path) -> None:
    assert check(unpack_rs_fixture(name, tmp_path)) > 0 or "empty" in name
