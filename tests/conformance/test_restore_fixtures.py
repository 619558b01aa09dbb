"""Tables that Hudi wrote, brought back to each of their first commits: rows as of then, and no trace of later ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.commit.leftovers.log_owners import log_owners
from lakehouse_engine.errors import InstantCleanedError, UnsupportedTableError
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.undo.restore import restore
from lakehouse_engine.undo.savepoint import create_savepoint
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs

TIMEOUT = 10_000
FIXTURES = spark_fixtures(EVERY_VERSION)

# What hudi-rs 0.5.0 reads otherwise than Hudi, as the README of the fixtures says.
DIFFERS_IN_HUDI_RS = (
    "add_column",
    "bootstrap",
    "keygen_timestamp",
    "keygen_custom",
    "merge_",
    "partition_",
    "compaction_pending",
    "schema_on_read",
    "timestamp_ntz",
    "no_meta_fields",
)


def snapshot(storage: LocalStorage, as_of: str | None = None) -> pa.Table:
    state = TableState.load(storage)
    return read_arrow(plan_snapshot(state, as_of), meta_columns=state.config.populates_meta_fields)


def data_files(storage: LocalStorage) -> list[str]:
    return [entry.path for entry in storage.walk() if not entry.path.startswith(".hoodie/") and ".hoodie_partition" not in entry.path]


def written_after(storage: LocalStorage, target: str) -> list[str]:
    """Data files with rows of later instants that no rollback block takes back. Hudi's savepoints pin such logs, so they stay."""
    order = TableState.load(storage).order
    logs, found = [], []
    for path in data_files(storage):
        partition, _, name = path.rpartition("/")
        if is_base_file_name(name):
            found += [path] if order.is_after(parse_base_file(partition, name).instant_time, target) else []
        elif is_log_file_name(name):
            log = parse_log_file(partition, name)
            logs.append((log, log_owners(storage, log)))
    for log, owners in logs:
        same = [other for other, _ in logs if (other.file_id, other.instant_time) == (log.file_id, log.instant_time)]
        undone = {taken for other, of_other in logs if other in same for _, taken in of_other.takes_back}
        found += [log.path] if any(order.is_after(writer, target) for writer in owners.writers - undone) else []
    return found


@pytest.mark.skipif(not FIXTURES, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
@pytest.mark.parametrize("name", FIXTURES)
def test_a_table_of_hudi_is_restored_to_its_first_readable_commit(name: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(name, tmp_path)
    storage = LocalStorage(str(path))
    target, before = _first_readable(storage)
    made = create_savepoint(storage, instant=target, user="tester", lock_timeout_ms=TIMEOUT)
    result = restore(storage, savepoint=made.instant, cascade=True, lock_timeout_ms=TIMEOUT)
    assert result.restored_to == target
    assert_same_rows(snapshot(storage), before)
    state = TableState.load(storage)
    assert [write.requested_time for write in state.timeline.writes().after(state.order.moment(target))] == []
    assert written_after(storage, target) == [], "files of instants that were taken back are still there"
    if not any(part in name for part in DIFFERS_IN_HUDI_RS):
        assert_same_rows(read_with_hudi_rs(path), before)
    again = restore(storage, savepoint=made.instant, lock_timeout_ms=TIMEOUT)
    assert again.instant is None
    assert_same_rows(snapshot(storage), before)


def _first_readable(storage: LocalStorage) -> tuple[str, pa.Table]:
    state = TableState.load(storage)
    writes = state.timeline.completed().writes().instants
    if len(writes) < 2:
        pytest.skip("the table has one commit only")
    readings = ((write.requested_time, _reading(storage, state.order.moment(write.requested_time))) for write in writes[:-1])
    found = next(((time, rows) for time, rows in readings if rows is not None), None)
    if found is None:
        pytest.skip("no commit but the last is readable")
    return found


def _reading(storage: LocalStorage, time: str) -> pa.Table | None:
    try:
        return snapshot(storage, time)
    except InstantCleanedError:
        return None
    except UnsupportedTableError as error:
        pytest.skip(f"refused by name: {error.message}")
