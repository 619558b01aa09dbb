"""Compaction of the merge-on-read tables that Hudi wrote: what is read stays as it was, plans and records are as Hudi's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.engine import LocalRunner
from lakehouse_engine.errors import LakehouseError, UnsupportedTableError
from lakehouse_engine.format.file_names import parse_log_file
from lakehouse_engine.format.log.blocks import BlockType, HeaderKey
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.delete_block import decode_delete_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.order import is_later
from lakehouse_engine.model.services import CompactionResult
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import CompactionOptions, WriteOptions
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_incremental, plan_snapshot
from lakehouse_engine.services.compact import run, schedule, schedule_and_run
from lakehouse_engine.services.compact.plan import read_plan
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.verify import verify
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, expected_readings, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows, first_difference, read_with_hudi_rs, user_columns

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

TABLES = spark_fixtures(EVERY_VERSION, "mor")
REFUSED = ("mor_bootstrap_metadata_only", "mor_schema_on_read")
"""Tables that are not read either."""
READABLE = [name for name in TABLES if not name.endswith(REFUSED)]
EVERYTHING = CompactionOptions(strategy="UnBoundedCompactionStrategy", log_blocks=2)
FILE_NAME = "_hoodie_file_name"
NOT_IN_HUDI_RS = "mor_timestamp_ntz"
"""The type is not implemented in it."""
NOT_BY_HUDI_RS = (NOT_IN_HUDI_RS, "mor_add_column", "mor_merge_partial_update")
"""Tables that hudi-rs 0.5.0 answers with an error while they have logs."""


def state_of(path: Path) -> TableState:
    return TableState.load(LocalStorage(str(path)))


def rows_of(path: Path, as_of: str | None = None) -> pa.Table:
    return read_arrow(plan_snapshot(state_of(path), as_of), meta_columns=True)


def compact(path: Path, options: WriteOptions | None = None, *, log_compaction: bool = False) -> CompactionResult:
    storage, runner = LocalStorage(str(path)), LocalRunner(2)
    return schedule_and_run(
        storage, EVERYTHING, options or WriteOptions(), runner, lock_timeout_ms=10_000, log_compaction=log_compaction
    )


def compact_all(path: Path) -> None:
    while compact(path).instant is not None:
        pass


@pytest.mark.parametrize("table", TABLES)
def test_a_compacted_table_has_the_rows_that_it_had(table: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(table, tmp_path)
    if table.endswith(REFUSED):
        check_not_compacted(path)
        return
    before = rows_of(path)
    compact_all(path)
    after, state = rows_of(path), state_of(path)
    assert_same_rows(after, before, ignore=[FILE_NAME])
    assert not any(piece.log_files for piece in state.view.latest_slices())
    assert verify(state).ok
    if table.endswith(NOT_IN_HUDI_RS):
        return
    if state.config.populates_meta_fields:
        assert_same_rows(after, read_with_hudi_rs(path))
    else:
        assert_same_rows(user_columns(after), user_columns(read_with_hudi_rs(path)))


def check_not_compacted(path: Path) -> None:
    """Refused where there would be something to do; the bootstrapped table has no logs."""
    if path.name == "mor_bootstrap_metadata_only":
        assert compact(path).instant is None
    else:
        with pytest.raises(UnsupportedTableError):
            compact(path)


@pytest.mark.parametrize("table", READABLE)
def test_earlier_instants_and_changes_between_them_read_as_before(table: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(table, tmp_path)
    known = moments_of(path)
    before = list(readings(path, known))
    compact_all(path)
    after = list(readings(path, known))
    for mine, theirs in zip(after, before, strict=True):
        if isinstance(theirs, pa.Table):
            assert isinstance(mine, pa.Table)
            assert_same_rows(mine, theirs, ignore=[FILE_NAME])
        else:
            assert mine == theirs


def moments_of(path: Path) -> list[str]:
    """When each completed write became visible."""
    state = state_of(path)
    return [state.order.moment(write.requested_time) for write in state.timeline.completed().writes()]


def readings(path: Path, times: list[str]) -> Iterator[pa.Table | type[LakehouseError]]:
    state = state_of(path)
    for time in times:
        yield answer(lambda time=time: plan_snapshot(state, time))
    for begin, end in pairwise(["000", *times]):
        yield answer(lambda begin=begin, end=end: plan_incremental(state, begin, end))


def answer(plan: object) -> pa.Table | type[LakehouseError]:
    try:
        return read_arrow(plan(), meta_columns=True)  # type: ignore[operator]
    except LakehouseError as error:
        return type(error)


@pytest.mark.parametrize("table", [name for name in TABLES if name.endswith("mor_compaction_pending")])
def test_a_compaction_that_hudi_left_pending_is_run_and_keeps_what_was_logged_since(table: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(table, tmp_path)
    (pending,) = (instant for instant in state_of(path).timeline.pending() if instant.action is Action.COMPACTION)
    logs = [parse_log_file("", file.name) for file in path.glob("**/.*.log.*") if ".hoodie" not in file.parts]
    # In versions 8 and 9 a log is named by the write that made it, in version 6 by its slice.
    later = sorted(log.name for log in logs if not is_later(pending.requested_time, log.instant_time))
    assert later
    result = run(LocalStorage(str(path)), EVERYTHING, WriteOptions(), LocalRunner(), lock_timeout_ms=1000)
    assert (result.instant, result.state) == (pending.requested_time, "completed")
    assert_same_rows(rows_of(path), pq.read_table(expected_readings(table)[0] / "snapshot.parquet"), ignore=[FILE_NAME])
    # hudi-rs does not read logs named after a pending compaction, and does read them once it is completed.
    assert_same_rows(read_with_hudi_rs(path), rows_of(path))
    live = {log.name for piece in state_of(path).view.latest_slices() for log in piece.log_files}
    assert set(later) <= live


def rewind(path: Path, time: str) -> None:
    """Take the table back to before the instant `time`, which in these tables is the name of each file's writer or slice."""
    for file in [*path.glob(".hoodie/*"), *path.glob("*/*"), *path.glob("*/.*")]:
        digits = [part for part in file.name.replace(".", "_").split("_") if len(part) == 17 and part.isdigit()]
        if file.is_file() and digits and digits[0] >= time:
            file.unlink()


COMPACTED = "v6-0.15.0/mor_compaction"
C1 = "20261121080022803"


def test_plan_and_record_are_those_that_hudi_made_of_the_same_table(tmp_path: Path) -> None:
    path, theirs = unpack_spark_fixture(COMPACTED, tmp_path / "ours"), unpack_spark_fixture(COMPACTED, tmp_path / "theirs")
    planned = read_plan(state_of(theirs), C1, Action.COMPACTION)
    rewind(path, C1)
    scheduled = schedule(LocalStorage(str(path)), CompactionOptions(), lock_timeout_ms=1000)
    assert scheduled.instant is not None
    assert read_plan(state_of(path), scheduled.instant, Action.COMPACTION) == planned
    run(LocalStorage(str(path)), CompactionOptions(), WriteOptions(), LocalRunner(), lock_timeout_ms=1000)
    assert stats_of(path, scheduled.instant) == stats_of(theirs, C1)
    assert_same_rows(rows_of(path), rows_of(theirs, C1), ignore=[FILE_NAME])
    for file in theirs.glob(f"*/*_{C1}.parquet"):
        (ours,) = path.glob(f"{file.parent.name}/{file.name.split('_')[0]}_*_{scheduled.instant}.parquet")
        assert first_difference(pq.read_table(ours), pq.read_table(file), ignore=[FILE_NAME]) is None
        assert set(pq.read_table(ours).column(FILE_NAME).to_pylist()) == {ours.name}


def stats_of(path: Path, time: str) -> list[HoodieWriteStat]:
    """Write stats of a commit, without what is about bytes, milliseconds and names of attempts."""
    state = state_of(path)
    instant = state.timeline.find(time)
    assert instant is not None
    metadata = state.commit_metadata(instant)
    assert metadata.compacted
    assert metadata.schema_json
    blank = {"path": "", "total_write_bytes": 0, "file_size_in_bytes": 0, "runtime_stats": None, "log_files": None, "extra": {}}
    return sorted((replace(stat, **blank) for stat in metadata.write_stats()), key=lambda stat: str(stat.file_id))


L1 = "20261121080122562"
LOG_COMPACTED = "v6-0.15.0/mor_log_compaction"


def test_a_log_compaction_makes_the_blocks_that_hudi_makes(tmp_path: Path) -> None:
    path, theirs = unpack_spark_fixture(LOG_COMPACTED, tmp_path / "ours"), unpack_spark_fixture(LOG_COMPACTED, tmp_path / "theirs")
    rewind(path, L1)
    for number in (4, 5, 6):
        for file in path.glob(f"*/.*.log.{number}_*"):
            file.unlink()
    before = rows_of(path)
    options = replace(EVERYTHING, log_blocks=3)
    storage = LocalStorage(str(path))
    result = schedule_and_run(
        storage, options, WriteOptions(log_block_format="AVRO"), LocalRunner(), lock_timeout_ms=1000, log_compaction=True
    )
    assert result.instant is not None
    assert_same_rows(rows_of(path), before)
    planned = read_plan(state_of(theirs), L1, Action.LOG_COMPACTION)
    assert read_plan(state_of(path), result.instant, Action.LOG_COMPACTION) == planned
    assert stats_of(path, result.instant) == stats_of(theirs, L1)
    (made,) = path.glob("*/.*.log.4_*")
    (hudis,) = theirs.glob("*/.*.log.4_*")
    for ours, other in zip(read_blocks(made.read_bytes()), read_blocks(hudis.read_bytes()), strict=True):
        assert ours.type is other.type
        assert ours.compacted_times == other.compacted_times
        assert ours.header[HeaderKey.INSTANT_TIME] == result.instant
        if ours.type is BlockType.DELETE:
            assert bytes(ours.content) == bytes(other.content)
            assert len(decode_delete_block(ours)) == 1
        else:
            assert_same_rows(decode_data_block(ours), decode_data_block(other))


@pytest.mark.parametrize("block_format", ["PARQUET", "AVRO"])
@pytest.mark.parametrize("table", READABLE)
def test_a_log_compaction_changes_nothing_for_any_reader(table: str, block_format: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(table, tmp_path)
    before = rows_of(path)
    agrees = not table.endswith(NOT_BY_HUDI_RS) and first_difference(read_with_hudi_rs(path), before) is None
    known = moments_of(path)
    earlier = list(readings(path, known))
    result = compact(path, WriteOptions(log_block_format=block_format), log_compaction=True)
    assert_same_rows(rows_of(path), before)
    for mine, theirs in zip(readings(path, known), earlier, strict=True):
        assert mine == theirs if not isinstance(theirs, pa.Table) else first_difference(mine, theirs) is None
    if result.instant is not None:
        assert verify(state_of(path)).ok
    if agrees:
        assert_same_rows(read_with_hudi_rs(path), before)
    compact(path)
    assert_same_rows(rows_of(path), before, ignore=[FILE_NAME])
