"""Every table that Hudi on Spark wrote in table version 6, read as Hudi reads it.

For each copy-on-write table and each reading that Hudi made of it (snapshot, time travel, incremental), ours must have the same
rows: columns, types and values, meta columns included. Column order is not compared (Hudi moves partition columns to the end), nor are
the names of list elements. Every difference is listed here with its reason, and must still be there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import InstantCleanedError, LakehouseError, UnsupportedTableError
from lakehouse_engine.model.keys import COMMIT_TIME
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import Unpack, expected_readings, fixtures_root, spark_fixtures
from tests.support.readers import assert_same_rows, first_difference, read_with_hudi_rs

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
AS_OF = "as.of.instant"


class Reading(NamedTuple):
    """One reading of one table: `table` is `<folder>/<name>`, `name` as in the manifest."""

    table: str
    name: str


PATH_COLUMNS: dict[str, tuple[str, str]] = {
    "v6-0.15.0/cow_keygen_custom": ("at", "Hudi returns the text of the path (19700101), we the stored number"),
    "v6-0.15.0/cow_keygen_timestamp_string": ("at", "Hudi returns the text of the path (20240229), we the stored text"),
    "v6-0.15.0/cow_keygen_timestamp_unix": ("at", "Hudi returns the text of the path, we the stored number"),
    "v6-0.15.0/cow_partition_encoded": ("p", "Hudi takes the value from the path, where an empty text is null"),
    "v6-0.15.0/cow_partition_plain": ("p", "Hudi decodes %ce of a path that was never encoded"),
    "v6-0.15.0/mor_partition_plain": ("p", "Hudi decodes %ce of a path that was never encoded"),
}
"""Columns that snapshot and time-travel reads of Hudi take from the partition path; its incremental reads, and ours, from the files."""

ARCHIVED_ROWS = "Hudi 0.15 leaves out rows of archived commits though they are in the range; Hudi 1.2 and we return them"
INCREMENTAL_READ_RIGHT: dict[Reading, str] = {
    Reading("v6-0.15.0/cow_archive", "incremental_000_20261121075801492"): ARCHIVED_ROWS,
    Reading("v6-0.15.0/cow_archive_beyond_savepoint", "incremental_000_20261121075914675"): ARCHIVED_ROWS,
    Reading("v6-0.15.0/cow_archive_beyond_savepoint", "incremental_20261121075907968_20261121075914675"): ARCHIVED_ROWS,
    Reading("v6-0.15.0/cow_archive_beyond_savepoint", "incremental_20261121075907968_20261121075913768"): ARCHIVED_ROWS,
    Reading("v6-0.15.0/cow_archive_blocked_by_savepoint", "incremental_000_20261121075902965"): ARCHIVED_ROWS,
    Reading("v6-0.15.0/cow_archive_merged", "incremental_000_20261121075928168"): ARCHIVED_ROWS,
    **{
        Reading(
            "v6-0.15.0/cow_overwrite", f"incremental_{bounds}"
        ): "Hudi fails on the schema of its own delete_partition, which has meta columns"
        for bounds in (
            "000_20261121081950332",
            "20261121081930814_20261121081950332",
            "20261121081930814_20261121081937109",
            "20261121081944579_20261121081950332",
            "20261121081948397_20261121081950332",
        )
    },
}
"""Checked against Hudi's own time-travel reading of the end of the range, filtered by commit time."""

FILES_THERE = "Hudi refuses every instant before the last clean's earliest commit to retain; here all its files are there"
CANNOT_CAST = "Hudi fails to cast the text of the path to the type of the column"
OWN_FILES = "Hudi fails to read what its own bulk_insert wrote"
READ_RIGHT: dict[Reading, str] = {
    Reading("v6-0.15.0/cow_archive", "as_of_20261121075754518"): FILES_THERE,
    Reading("v6-0.15.0/cow_archive_beyond_savepoint", "as_of_20261121075907968"): FILES_THERE,
    Reading("v6-0.15.0/cow_archive_blocked_by_savepoint", "as_of_20261121075854553"): FILES_THERE,
    Reading("v6-0.15.0/cow_archive_blocked_by_savepoint", "as_of_20261121075901345"): FILES_THERE,
    Reading("v6-0.15.0/cow_archive_merged", "as_of_20261121075926356"): FILES_THERE,
    Reading("v6-0.15.0/cow_clean_commits", "as_of_20261121075522198"): FILES_THERE,
    Reading("v6-0.15.0/cow_clean_commits", "as_of_20261121075526558"): FILES_THERE,
    Reading("v6-0.15.0/cow_keygen_timestamp_millis", "snapshot"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_keygen_timestamp_millis", "as_of_20261121083623541"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_keygen_timestamp_millis", "as_of_20261121083625112"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_keygen_timestamp_scalar", "snapshot"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_keygen_timestamp_scalar", "as_of_20261121083629092"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_keygen_timestamp_scalar", "as_of_20261121083630411"): CANNOT_CAST,
    Reading("v6-0.15.0/cow_rollback_lazy", "as_of_20261121083703575"): FILES_THERE,
    Reading("v6-0.15.0/cow_types_bulk_insert", "snapshot"): OWN_FILES,
    Reading("v6-0.15.0/cow_types_bulk_insert", "as_of_20261121083217384"): OWN_FILES,
    Reading("v6-0.15.0/cow_types_bulk_insert", "as_of_20261121083218253"): OWN_FILES,
    Reading("v6-0.15.0/cow_types_bulk_insert", "incremental_000_20261121083218253"): OWN_FILES,
    Reading("v6-1.2.0/cow_archive", "as_of_20261121084837742"): FILES_THERE,
    Reading("v6-1.2.0/cow_clean_commits", "as_of_20261121084554301"): FILES_THERE,
    Reading("v6-1.2.0/cow_clean_commits", "as_of_20261121084610230"): FILES_THERE,
}
"""Hudi answers with an error, we with rows; checked against hudi-rs, which reads by listing."""

SILENTLY_SHORT: dict[Reading, str] = {
    Reading("v6-0.15.0/cow_clean_versions", f"as_of_{time}"): "after a clean by file versions Hudi returns what is left; we refuse"
    for time in ("20261121075548486", "20261121075549374", "20261121075550577", "20261121075552144")
}

NOT_READ: dict[str, str] = {
    "v6-0.15.0/cow_schema_on_read": "a schema-on-read history is refused",
    "v6-0.15.0/mor_schema_on_read": "a schema-on-read history is refused",
    "v6-0.15.0/cow_bootstrap_metadata_only": "metadata-only bootstrap is refused while skeleton files are live",
    "v6-0.15.0/mor_bootstrap_metadata_only": "metadata-only bootstrap is refused while skeleton files are live",
}
"""Tables refused by name, but for readings that touch nothing of what is refused."""

READ_NONETHELESS = frozenset({Reading("v6-0.15.0/cow_bootstrap_metadata_only", "incremental_00000000000001_20261121082203198")})


def readings(table_type: str, kinds: tuple[str, ...]) -> list[Reading]:
    return [
        Reading(table, name)
        for table in spark_fixtures(table_type=table_type)
        for name in expected_readings(table)[1]
        if name.startswith(kinds)
    ]


COW_READINGS = readings("cow", ("snapshot", "as_of", "incremental"))
MOR_READINGS = readings("mor", ("read_optimized",))

@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """How the readings compared; shown when the last one is done."""
    counts: Counter[str] = Counter()
    yield counts
    shown = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{sum(counts.values())} readings of Hudi: {shown}")


def read(path: Path, reading: Reading, options: dict[str, str]) -> pa.Table:
    """Our reading, with the meta columns where the table has them."""
    state = TableState.load(LocalStorage(str(path)))
    if END in options:
        plan = plan_incremental(state, options[BEGIN], options[END])
    else:
        plan = plan_snapshot(state, options.get(AS_OF), read_optimized=reading.name == "read_optimized")
    return read_arrow(plan, meta_columns=state.config.populates_meta_fields)


def expected(reading: Reading) -> pa.Table:
    return pq.read_table(expected_readings(reading.table)[0] / f"{reading.name}.parquet")


def check_equal(ours: pa.Table, reading: Reading) -> str:
    theirs = expected(reading)
    column = PATH_COLUMNS.get(reading.table, ("", ""))[0]
    if not column or reading.name.startswith("incremental"):
        assert_same_rows(ours, theirs)
        return "equal"
    assert first_difference(ours, theirs) is not None, "the column does not differ any more: take the table off the list"
    assert_same_rows(ours, theirs, ignore=[column])
    return "equal but for a partition column"


def check_refused(path: Path, reading: Reading, options: dict[str, str], kind: type[LakehouseError]) -> None:
    with pytest.raises(kind) as caught:
        read(path, reading, options)
    assert type(caught.value) is kind


def refusal_for(error: str) -> type[LakehouseError]:
    """Our error where Hudi has one."""
    cleaned = ("Cleaner cleaned up", "PATH_NOT_FOUND", "SparkFileNotFoundException")
    return InstantCleanedError if any(word in error for word in cleaned) else UnsupportedTableError


def range_of(reading: Reading, options: dict[str, str]) -> pa.Table:
    """The rows of an incremental range, from Hudi's reading of the table as of the end of the range."""
    table = expected(Reading(reading.table, f"as_of_{options[END]}"))
    time = table.column(COMMIT_TIME)
    return table.filter(pc.and_(pc.greater(time, options[BEGIN]), pc.less_equal(time, options[END])))


def compare(path: Path, reading: Reading) -> str:
    """Check one reading; answers in which way it is right."""
    entry = expected_readings(reading.table)[1][reading.name]
    options = {key: str(value) for key, value in dict(entry["options"]).items()}  # type: ignore[call-overload]
    if reading.table in NOT_READ and reading not in READ_NONETHELESS:
        check_refused(path, reading, options, UnsupportedTableError)
        return "of tables refused by name"
    if reading in SILENTLY_SHORT:
        assert "rows" in entry
        check_refused(path, reading, options, InstantCleanedError)
        return "refused where Hudi returns too few rows"
    if reading in INCREMENTAL_READ_RIGHT:
        ours = read(path, reading, options)
        assert_same_rows(ours, range_of(reading, options))
        assert "error" in entry or first_difference(ours, expected(reading)) is not None
        return "right where Hudi fails or returns too few rows"
    if reading in READ_RIGHT:
        assert "error" in entry
        assert_same_rows(read(path, reading, options), read_with_hudi_rs(path, as_of=options.get(AS_OF)))
        return "right where Hudi fails or returns too few rows"
    if "error" in entry:
        check_refused(path, reading, options, refusal_for(str(entry["error"])))
        return "refused as by Hudi"
    return check_equal(read(path, reading, options), reading)


@pytest.mark.parametrize("reading", [*COW_READINGS, *MOR_READINGS], ids="-".join)
def test_a_reading_has_the_rows_that_hudi_reads(reading: Reading, unpack: Unpack, tally: Counter[str]) -> None:
    tally[compare(unpack(reading.table), reading)] += 1


def test_every_listed_difference_is_about_a_reading_that_there_is() -> None:
    known = {*COW_READINGS, *MOR_READINGS}
    assert {*INCREMENTAL_READ_RIGHT, *READ_RIGHT, *SILENTLY_SHORT, *READ_NONETHELESS} <= known
    assert {*PATH_COLUMNS, *NOT_READ} <= {reading.table for reading in known}
