"""Every table that Hudi 1.2 wrote in table versions 8 and 9, read as Hudi reads it: each query that it made, row by row.

Time travel and ranges go by completion times. Every difference is listed here with its reason, and must still be there.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import InstantCleanedError, LakehouseError, UnsupportedTableError
from lakehouse_engine.model.keys import COMMIT_TIME
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import Unpack, expected_readings, fixtures_root, spark_fixtures
from tests.support.readers import assert_same_rows, first_difference

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

TABLES = spark_fixtures(("v8-1.2.0", "v9-1.2.0"))
BEGIN, END, AS_OF = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime", "as.of.instant"


class Reading(NamedTuple):
    """One reading of one table: `table` is `<folder>/<name>`, `name` as in the manifest."""

    table: str
    name: str


READINGS = [Reading(table, name) for table in TABLES for name in expected_readings(table)[1] if not name.startswith("cdc")]

PATH_COLUMNS: dict[str, tuple[str, str]] = {
    "v9-1.2.0/cow_keygen_timestamp_unix": ("at", "Hudi returns the text of the path, we the stored number"),
    "v9-1.2.0/cow_partition_encoded": ("p", "Hudi takes the value from the path: an empty text is null, and ranges are not decoded"),
}
"""Columns that Hudi takes from the partition path, and we from the files."""

FILES_THERE = "Hudi refuses every instant before the last clean's earliest commit to retain; here all its files are there"
READ_RIGHT: dict[Reading, str] = {
    Reading("v8-1.2.0/cow_archive", "as_of_20261121082723395"): FILES_THERE,
    Reading("v9-1.2.0/cow_archive", "as_of_20261121080151011"): FILES_THERE,
    Reading("v9-1.2.0/cow_clean_commits", "as_of_20261121080032284"): FILES_THERE,
    Reading("v9-1.2.0/cow_clean_commits", "as_of_20261121080044770"): FILES_THERE,
}
"""Hudi answers with an error, we with rows."""

NOT_KEPT = "mis-decodes partial-update log blocks in incremental reads"

SILENTLY_SHORT = {
    Reading("v8-1.2.0/mor_clean_commits", "incremental_20261121082634996_20261121082636336"),
    Reading("v9-1.2.0/cow_clean_commits", "incremental_20261121080033520_20261121080034727"),
    Reading("v9-1.2.0/mor_clean_commits", "incremental_20261121080059421_20261121080101189"),
}
"""A clean took base files of the range; Hudi returns what is left of its rows in newer ones, and we refuse."""

BOOTSTRAPPED = "v9-1.2.0/cow_bootstrap_metadata_only"
"""Refused while skeleton files are live."""

def read(path: Path, reading: Reading, options: dict[str, str]) -> pa.Table:
    """Our reading, with the meta columns where the table has them."""
    state = TableState.load(LocalStorage(str(path)))
    if END in options:
        query = Query("incremental", begin=options[BEGIN], end=options[END])
    else:
        query = Query("read_optimized" if reading.name == "read_optimized" else "snapshot", as_of=options.get(AS_OF))
    return read_arrow(plan_query(state, query), meta_columns=state.config.populates_meta_fields)


def refused(path: Path, reading: Reading, options: dict[str, str]) -> type[LakehouseError]:
    with pytest.raises(LakehouseError) as caught:
        read(path, reading, options)
    return type(caught.value)


@pytest.mark.parametrize("reading", READINGS, ids="-".join)
def test_a_reading_has_the_rows_that_hudi_reads(reading: Reading, unpack: Unpack) -> None:
    folder, manifest = expected_readings(reading.table)
    entry = manifest[reading.name]
    options = {key: str(value) for key, value in dict(entry["options"]).items()}  # type: ignore[call-overload]
    path, error = unpack(reading.table), str(entry.get("error", ""))
    if is_refused(path, reading):
        assert refused(path, reading, options) is UnsupportedTableError
    elif reading in SILENTLY_SHORT:
        assert refused(path, reading, options) is InstantCleanedError
    elif NOT_KEPT in error:
        assert read(path, reading, options).num_rows == 0  # its statements matched no row
    elif error:
        check_beyond_hudi(path, reading, options, error)
    else:
        check_equal(read(path, reading, options), pq.read_table(folder / f"{reading.name}.parquet"), reading.table)


def is_refused(path: Path, reading: Reading) -> bool:
    return reading.table == BOOTSTRAPPED and reading.name.startswith(("snapshot", "as_of", "incremental_000"))


def check_beyond_hudi(path: Path, reading: Reading, options: dict[str, str], error: str) -> None:
    """Where Hudi has no rows to compare with, ours are those that a reader by file listing sees, or there is a typed error."""
    try:
        rows = read(path, reading, options)
    except InstantCleanedError:
        assert any(word in error for word in ("Cleaner cleaned up", "PATH_NOT_FOUND", "SparkFileNotFoundException"))
        return
    assert reading in READ_RIGHT or "mor_" in reading.table
    assert rows.num_rows > 0


def check_equal(ours: pa.Table, theirs: pa.Table, table: str) -> None:
    column = PATH_COLUMNS.get(table, ("", ""))[0]
    if not column:
        assert_same_rows(ours, theirs)
        return
    assert first_difference(ours, theirs) is not None, "the column does not differ any more: take the table off the list"
    assert_same_rows(ours, theirs, ignore=[column])


def test_partial_rows_of_a_range_have_the_values_that_they_keep(unpack: Unpack) -> None:
    """Hudi fails here: what it would read are the rows of its snapshot whose commits are in the range."""
    table, name = "v9-1.2.0/mor_merge_into_partial", "incremental_20261121083143428_20261121083152153"
    folder, manifest = expected_readings(table)
    assert "ClassCastException" in str(manifest[name]["error"])
    theirs = pq.read_table(folder / "snapshot.parquet")
    changed = theirs.filter(pc.greater(theirs.column(COMMIT_TIME), "20261121083143428"))
    assert changed.num_rows == 2
    options = {key: str(value) for key, value in dict(manifest[name]["options"]).items()}  # type: ignore[call-overload]
    assert_same_rows(read(unpack(table), Reading(table, name), options), changed)
