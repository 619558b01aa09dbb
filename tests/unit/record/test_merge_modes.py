"""How tables of versions 8 and 9 are merged: by their mode, by what is left of a payload class, by partial updates."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError, PropertiesError, UnsupportedTableError
from lakehouse_engine.model.merge_mode import MERGE_PREFIX, MergeMode, merge_properties
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.record.merging.deletions import HUDI_MARK, DeleteMarks
from lakehouse_engine.record.merging.mergers import EventTime, FilledIn, OverwriteWithLatest, PartialUpdate, RecordMerger
from lakehouse_engine.record.merging.payloads import payload_of

MODELS = "org.apache.hudi.common.model."
TOASTED = "__debezium_unavailable_value"
CHANGES = DeleteMarks("_change_operation_type", "d")


def config(version: int, **properties: str) -> TableConfig:
    return TableConfig(
        {"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": str(version), **properties}
    )


def of_mode(version: int, mode: MergeMode, payload: str | None = None, **more: str) -> TableConfig:
    stored = merge_properties(TableVersion(version), mode, None if payload is None else MODELS + payload)
    return config(version, **{"hoodie.table.ordering.fields": "ts", **stored, **more})


EVENT_TIME, COMMIT_TIME, CUSTOM = MergeMode.EVENT_TIME, MergeMode.COMMIT_TIME, MergeMode.CUSTOM


@pytest.mark.parametrize(
    ("version", "mode", "payload", "merger", "marks", "weighs"),
    [
        (9, EVENT_TIME, None, EventTime(), HUDI_MARK, True),
        (9, COMMIT_TIME, None, OverwriteWithLatest(), HUDI_MARK, False),
        (8, EVENT_TIME, "EventTimeAvroPayload", EventTime(), HUDI_MARK, True),
        (9, EVENT_TIME, "EventTimeAvroPayload", EventTime(), HUDI_MARK, True),
        (8, CUSTOM, "PartialUpdateAvroPayload", PartialUpdate(), HUDI_MARK, False),
        (9, EVENT_TIME, "PartialUpdateAvroPayload", FilledIn(by_event_time=True), HUDI_MARK, True),
        (9, COMMIT_TIME, "OverwriteNonDefaultsWithLatestAvroPayload", FilledIn(by_event_time=False), HUDI_MARK, False),
        (9, COMMIT_TIME, "AWSDmsAvroPayload", OverwriteWithLatest(), DeleteMarks("Op", "D"), False),
        (9, EVENT_TIME, "debezium.MySqlDebeziumAvroPayload", EventTime(), CHANGES, True),
        (9, EVENT_TIME, "debezium.PostgresDebeziumAvroPayload", FilledIn(by_event_time=True, marker=TOASTED), CHANGES, True),
        (9, CUSTOM, "FirstValueAvroPayload", EventTime(equals_win=False, earliest_of_equals=True), HUDI_MARK, False),
    ],
)
def test_what_a_table_is_merged_by(
    version: int, mode: MergeMode, payload: str | None, merger: RecordMerger, marks: DeleteMarks, weighs: bool
) -> None:
    table = of_mode(version, mode, payload)
    found = payload_of(table)
    assert (found.merger, found.delete_marks(table.properties), found.weighs_deletions) == (merger, marks, weighs)
    assert payload is None or found.java_class == MODELS + payload
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_column_that_marks_deletions_counts_in_every_mode() -> None:
    field, marker = f"{MERGE_PREFIX}hoodie.payload.delete.field", f"{MERGE_PREFIX}hoodie.payload.delete.marker"
    table = of_mode(9, COMMIT_TIME, **{field: "op", marker: "gone"})
    assert payload_of(table).delete_marks(table.properties) == DeleteMarks("op", "gone")
    with pytest.raises(OptionError, match=r"hoodie\.payload\.delete\.marker"):
        payload_of(of_mode(9, COMMIT_TIME, **{field: "op"}))


def test_a_class_that_means_the_mode_may_be_asked_for() -> None:
    assert payload_of(of_mode(9, EVENT_TIME), "DefaultHoodieRecordPayload").merger == EventTime()
    with pytest.raises(OptionError, match="merges by EVENT_TIME_ORDERING"):
        payload_of(of_mode(9, EVENT_TIME), "OverwriteWithLatestAvroPayload")
    with pytest.raises(OptionError, match="as PartialUpdateAvroPayload; leave DefaultHoodieRecordPayload out"):
        payload_of(of_mode(9, EVENT_TIME, "PartialUpdateAvroPayload"), "DefaultHoodieRecordPayload")


def test_code_of_its_own_is_refused_by_name() -> None:
    for version in (8, 9):
        with pytest.raises(UnsupportedTableError, match=r"org\.apache\.hudi\.common\.model\.Own"):
            payload_of(of_mode(version, CUSTOM, "Own"))
    with pytest.raises(UnsupportedTableError, match="1-2-3"):
        payload_of(config(9, **{"hoodie.record.merge.strategy.id": "1-2-3"}))


def test_partial_updates_that_do_not_say_what_is_missing_are_refused() -> None:
    unavailable = f"{MERGE_PREFIX}hoodie.write.partial.update.unavailable.value"
    with pytest.raises(PropertiesError, match=r"unavailable\.value"):
        payload_of(of_mode(9, EVENT_TIME, "debezium.PostgresDebeziumAvroPayload", **{unavailable: ""}))
    with pytest.raises(UnsupportedTableError, match="table version 9"):
        payload_of(config(6, **{"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}))


BASE = pa.table({"ts": [10, 10, 10], "v": ["x", "?", None], "b": [b"1", b"?", b"3"], "n": [1, None, 3]})
INCOMING = pa.table({"ts": [10, 9, 11], "v": ["?", "y", "?"], "b": [b"?", b"8", None], "n": [None, 8, None]})


def merged(merger: RecordMerger) -> list[dict[str, object]]:
    wins = merger.wins([BASE.column("ts")], [INCOMING.column("ts")])
    rows: list[dict[str, object]] = merger.combine(BASE, INCOMING, wins).to_pylist()
    return rows


def test_the_newer_row_is_filled_whichever_is_stored() -> None:
    assert merged(FilledIn(by_event_time=True)) == [
        {"ts": 10, "v": "?", "b": b"?", "n": 1},
        {"ts": 10, "v": "?", "b": b"?", "n": 8},
        {"ts": 11, "v": "?", "b": b"3", "n": 3},
    ]
    assert merged(FilledIn(by_event_time=True, marker="?")) == [
        {"ts": 10, "v": "x", "b": b"1", "n": None},
        {"ts": 10, "v": "y", "b": b"8", "n": None},
        {"ts": 11, "v": None, "b": None, "n": None},
    ]


def test_by_commit_time_the_later_row_is_filled() -> None:
    assert merged(FilledIn(by_event_time=False))[1] == {"ts": 9, "v": "y", "b": b"8", "n": 8}
    assert merged(FilledIn(by_event_time=False, marker="?"))[0] == {"ts": 10, "v": "x", "b": b"1", "n": None}


def test_deletions_are_compared_by_event_time_only() -> None:
    sides = [BASE.column("ts")], [INCOMING.column("ts")]
    gone = FilledIn(by_event_time=True).deletes(*sides)
    assert gone is not None
    assert gone.tolist() == [True, False, True]
    assert FilledIn(by_event_time=False).deletes(*sides) is None


@pytest.mark.parametrize(
    ("merger", "expected"),
    [
        (FilledIn(by_event_time=True), {"ts": 2, "v": "?", "n": 7}),
        (FilledIn(by_event_time=True, marker="?"), {"ts": 2, "v": "old", "n": None}),
        (FilledIn(by_event_time=False), {"ts": 1, "v": "old", "n": 7}),
    ],
)
def test_rows_of_a_batch_fill_each_other(merger: RecordMerger, expected: dict[str, object]) -> None:
    batch = pa.table({"ts": [2, 1], "v": ["?", "old"], "n": pa.array([None, 7], pa.int64())})
    rows, _ = merger.reduce(batch, pa.array(["k", "k"]), [batch.column("ts")])
    assert rows.to_pylist() == [expected]
