"""Time travel to a savepoint when all around it is archived: the rows are those that the savepoint's files hold, in every query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.errors import CorruptLogError, InstantCleanedError, MissingFileError
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata, HoodieSavepointPartitionMetadata
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.local_table import LocalTable
from tests.support.readers import assert_same_rows
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import state_path, table_version, version_of_new_tables

__all__ = ["pytest_generate_tests", "table_version"]

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
COLUMNS = ["_hoodie_commit_time", *SCHEMA.names]


def rows(keys: range, ts: int) -> pa.Table:
    return pa.table({"id": [*keys], "part": ["x"] * len(keys), "ts": [ts] * len(keys), "v": [f"v{ts}"] * len(keys)}, schema=SCHEMA)


def pending_at_the_savepoint(table: LocalTable) -> str:
    """Six rows: two in a base file, two logged to it, two logged to a compaction that is planned. The moment of the savepoint."""
    table.upsert(rows(range(4), 1))
    table.compact()
    table.upsert(rows(range(2, 4), 2))
    assert table.schedule_compaction().instant is not None
    table.upsert(rows(range(3, 6), 3))
    return table.state.order.moment(table.savepoint(None, "s").instant)


def savepoint_of(table: LocalTable) -> str:
    """The instant of the one savepoint."""
    [time] = table.state.timeline.savepointed
    return time


def archived(table: LocalTable) -> None:
    assert table.run_compaction().instant is not None
    for step in range(4, 16):
        table.upsert(rows(range(6), step))
        table.compact()
        table.clean(1)
        table.archive(2, 3)
    assert not any(instant.requested_time < table.instants()[0] for instant in table.state.timeline.writes())


@pytest.fixture
def table() -> LocalTable:
    storage = MemoryStorage()
    create_table(storage, TableSpec("t", SCHEMA, ["id"], ["ts"], ["part"], "mor", version=version_of_new_tables()))
    return LocalTable(storage, {"hoodie.parquet.small.file.limit": 0})


def test_a_compaction_that_was_pending_at_the_savepoint_takes_no_rows_away_when_it_is_archived(table: LocalTable) -> None:
    saved = pending_at_the_savepoint(table)
    expected = table.read(COLUMNS, as_of=saved)
    assert expected.num_rows == 6
    archived(table)
    assert_same_rows(table.read(COLUMNS, as_of=saved), expected)
    assert sorted(table.read(as_of=saved, query="snapshot")["v"].to_pylist()) == ["v1", "v1", "v2", "v3", "v3", "v3"]
    assert table.read(as_of="s").num_rows == 6
    table.restore("s")
    assert_same_rows(table.read(COLUMNS), expected)


@pytest.mark.parametrize("kept", [2, 3, 4])
def test_it_takes_none_away_at_any_time_while_archiving_passes_the_savepoint(table: LocalTable, kept: int) -> None:
    """Also when the compaction is archived, and the commit of the savepoint is not yet, or is the last one."""
    saved = pending_at_the_savepoint(table)
    expected = table.read(COLUMNS, as_of=saved)
    assert table.run_compaction().instant is not None
    boundaries = set()
    for step in range(4, 12):
        table.upsert(rows(range(6), step))
        table.clean(1)
        table.archive(kept, kept + 1)
        boundaries.add(table.state.archived_files().boundary)
        assert_same_rows(table.read(COLUMNS, as_of=saved), expected)
    assert min(boundaries) < savepoint_of(table) < max(boundaries)


def test_a_range_that_ends_at_the_savepoint_has_its_rows_when_all_is_archived(table: LocalTable) -> None:
    first = table.state.order.moment(table.upsert(rows(range(2), 0)).instant or "")
    saved = pending_at_the_savepoint(table)
    expected = table.read(COLUMNS, query="incremental", begin=first, end=saved)
    assert expected.num_rows == 6
    archived(table)
    assert_same_rows(table.read(COLUMNS, query="incremental", begin=first, end=saved), expected)
    with pytest.raises(InstantCleanedError):
        table.read(COLUMNS, query="incremental", begin="000", end=first)


@pytest.mark.parametrize("size", [0, 60, -1], ids=["empty", "half", "one byte less"])
def test_a_log_that_a_savepoint_keeps_and_that_is_cut_is_named_when_all_is_archived(table: LocalTable, size: int) -> None:
    saved = pending_at_the_savepoint(table)
    logs = [file.path for file in table.storage.walk("part=x") if ".log." in file.name]
    archived(table)
    assert table.read(as_of=saved).num_rows == 6
    for log in logs:
        content = table.storage.read(log)
        table.storage.overwrite(log, content[:size])
        for query in ({"as_of": saved}, {"query": "incremental", "begin": "000", "end": saved}):
            with pytest.raises(CorruptLogError) as caught:
                table.read(**query)
            assert caught.value.context["path"] == log
        table.storage.overwrite(log, content)
    table.restore("s")
    assert table.read().num_rows == 6


def as_hudi_pins(table: LocalTable) -> str:
    """Of a slice on a pending compaction Hudi pins the logs on it, and not what they are on top of. The compaction's instant."""
    path = state_path(table.storage, f"{savepoint_of(table)}.savepoint")
    metadata = decode_plan(HoodieSavepointMetadata, table.storage.read(path))
    (partition,) = metadata.partition_metadata
    (planned,) = (instant.requested_time for instant in table.state.timeline.pending().writes())
    pinned = metadata.partition_metadata[partition].savepoint_data_file
    # In later versions the name of a log has its writer, which was completed after the plan.
    on_it = {name for name in pinned if ".log." in name and name[1:].split("_")[1][:17] >= planned}
    (group,) = {name[1:].partition("_")[0] for name in on_it}
    names = tuple(name for name in pinned if name in on_it or group not in name)
    assert len(names) < len(pinned)
    pins = HoodieSavepointPartitionMetadata(partition_path=partition, savepoint_data_file=names)
    changed = HoodieSavepointMetadata(savepointed_by="hudi", savepointed_at=1, comments="", partition_metadata={partition: pins})
    table.storage.overwrite(path, encode_plan(changed))
    return planned


def test_a_savepoint_of_hudi_on_a_pending_compaction_is_read_on_what_the_compaction_made(table: LocalTable) -> None:
    saved = pending_at_the_savepoint(table)
    expected = table.read(COLUMNS, as_of=saved)
    planned = as_hudi_pins(table)
    archived(table)
    assert_same_rows(table.read(COLUMNS, as_of=saved), expected)
    (base,) = (file.path for file in table.storage.walk("part=x") if file.name.endswith(f"_{planned}.parquet"))
    table.storage.delete(base)
    with pytest.raises(MissingFileError, match=planned):
        table.read(COLUMNS, as_of=saved)


def test_a_savepoint_of_hudi_is_read_on_what_it_pins_nothing_of_while_the_compaction_is_pending(table: LocalTable) -> None:
    """What the logs that it pins are on top of is listed still, and its writers may be archived."""
    for step in (-2, -1):
        table.upsert(rows(range(4), step))
    saved = pending_at_the_savepoint(table)
    expected = table.read(COLUMNS, as_of=saved)
    assert sorted(expected["v"].to_pylist()) == ["v1", "v1", "v2", "v3", "v3", "v3"]
    planned = as_hudi_pins(table)
    for step in range(4, 10):
        table.upsert(rows(range(6, 8), step))
        table.archive(2, 3)
        assert_same_rows(table.read(COLUMNS, as_of=saved), expected)
    boundary = table.state.archived_files().boundary
    assert "" < boundary < planned
