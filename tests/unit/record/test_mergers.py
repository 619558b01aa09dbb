from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from lakehouse_engine.errors import OptionError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.merging.mergers import EventTime, OverwriteWithLatest, PartialUpdate, UpdateColumns, choose
from lakehouse_engine.record.merging.payloads import PAYLOADS, merger_of

MODELS = "org.apache.hudi.common.model."
BASE = pa.table({"id": ["a", "b", "c"], "ts": [10, 10, None], "v": ["x", None, "z"], "n": [[1], None, [3]]})
INCOMING = pa.table({"id": ["a", "b", "c"], "ts": [10, 9, 1], "v": [None, "new", "q"], "n": [[7], [8], None]})


def ordering(table: pa.Table) -> list[pa.ChunkedArray]:
    return [table.column("ts")]


def config(**properties: str) -> TableConfig:
    named = {f"hoodie.{name.replace('_', '.')}": value for name, value in properties.items()}
    return TableConfig({"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6", **named})


def merged(name: str) -> list[dict[str, object]]:
    merger = PAYLOADS[name].merger
    return merger.combine(BASE, INCOMING, merger.wins(ordering(BASE), ordering(INCOMING))).to_pylist()


def test_overwrite_takes_every_incoming_row_whole() -> None:
    assert OverwriteWithLatest().wins(ordering(BASE), ordering(INCOMING)) is None
    assert merged("OverwriteWithLatestAvroPayload") == INCOMING.to_pylist()


def test_event_time_keeps_stored_rows_of_higher_ordering() -> None:
    assert EventTime().wins(ordering(BASE), ordering(INCOMING)).tolist() == [True, False, True]
    stored, offered = BASE.to_pylist(), INCOMING.to_pylist()
    assert merged("DefaultHoodieRecordPayload") == [offered[0], stored[1], offered[2]]


def test_event_time_says_so_when_every_row_wins() -> None:
    assert EventTime().wins(ordering(BASE), ordering(BASE)) is None
    assert EventTime().wins([], []) is None


def test_partial_update_fills_nulls_from_the_older_row_whichever_is_stored() -> None:
    assert merged("PartialUpdateAvroPayload") == [
        {"id": "a", "ts": 10, "v": "x", "n": [7]},
        {"id": "b", "ts": 10, "v": "new", "n": [8]},
        {"id": "c", "ts": 1, "v": "q", "n": [3]},
    ]
    assert PartialUpdate().combine(BASE, INCOMING, None).column("n").to_pylist() == [[7], [8], [3]]


def test_deletions_follow_ordering_under_event_time_only() -> None:
    assert EventTime().deletes(ordering(BASE), ordering(INCOMING)).tolist() == [True, False, True]
    assert OverwriteWithLatest().deletes(ordering(BASE), ordering(INCOMING)) is None
    assert PartialUpdate().deletes(ordering(BASE), ordering(INCOMING)) is None


def test_update_columns_leaves_the_others_stored() -> None:
    merger = UpdateColumns(EventTime(), frozenset({"v"}))
    wins = merger.wins(ordering(BASE), ordering(INCOMING))
    rows = merger.combine(BASE, INCOMING, wins).to_pylist()
    assert [row["v"] for row in rows] == [None, None, "q"]
    assert [{**row, "v": None} for row in rows] == [{**row, "v": None} for row in BASE.to_pylist()]


def test_whole_rows_tell_whether_a_lost_pair_can_be_left_alone() -> None:
    mixing = [name for name, payload in PAYLOADS.items() if not payload.merger.whole_rows]
    assert mixing == ["PartialUpdateAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "PostgresDebeziumAvroPayload"]
    assert not UpdateColumns(EventTime(), frozenset()).whole_rows


@pytest.mark.parametrize("name", PAYLOADS)
def test_batch_is_reduced_to_a_row_a_key_by_ordering(name: str) -> None:
    batch = pa.table({"id": ["a", "b", "a"], "ts": [2, 1, 1], "v": [None, "b", "old"]})
    rows, sources = PAYLOADS[name].merger.reduce(batch, batch.column("id").combine_chunks(), ordering(batch))
    assert sources.tolist() == [0, 1]
    assert rows.column("v").to_pylist() == ["old" if name.startswith("Partial") else None, "b"]


def test_choose_works_on_every_kind_of_column() -> None:
    schema = pa.schema(
        [
            ("s", pa.struct([("x", pa.int32())])),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("l", pa.list_(pa.field("element", pa.string()))),
            ("d", pa.decimal128(10, 2)),
            ("b", pa.binary()),
            ("t", pa.timestamp("us", "UTC")),
        ]
    )
    one = pa.Table.from_pylist([{"s": {"x": 1}, "m": [("k", 1)], "l": ["a", None], "d": 1, "b": b"1", "t": 1}, {}], schema)
    two = pa.Table.from_pylist([{}, {"s": {"x": 2}, "m": [("q", 2)], "l": [], "d": 2, "b": b"2", "t": 2}], schema)
    both = choose(one, two, np.array([False, True]))
    assert both.schema == schema
    assert both.to_pylist() == [one.to_pylist()[0], two.to_pylist()[1]]
    assert PartialUpdate().combine(one, two, np.array([True, False])).to_pylist() == both.to_pylist()
    chunked = pa.concat_tables([one.slice(0, 1), one.slice(1)])
    assert choose(chunked, two, np.array([False, True])).to_pylist() == both.to_pylist()


@pytest.mark.parametrize(
    ("properties", "override", "expected"),
    [
        ({}, "", OverwriteWithLatest()),
        ({"table_precombine_field": "ts"}, "", OverwriteWithLatest()),  # Hudi 0.15's copy-on-write tables
        ({"table_precombine_field": "ts", "table_type": "MERGE_ON_READ"}, "", EventTime()),
        ({"table_ordering_fields": "ts"}, "", EventTime()),
        ({"table_precombine_field": "ts", "record_merge_mode": "EVENT_TIME_ORDERING"}, "", EventTime()),
        ({"table_ordering_fields": "ts", "record_merge_mode": "COMMIT_TIME_ORDERING"}, "", OverwriteWithLatest()),
        ({"table_precombine_field": "ts"}, "DefaultHoodieRecordPayload", EventTime()),
        ({"table_precombine_field": "ts"}, "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload", OverwriteWithLatest()),
        ({"compaction_payload_class": f"{MODELS}PartialUpdateAvroPayload"}, "", PartialUpdate()),
        ({"compaction_payload_class": f"{MODELS}DefaultHoodieRecordPayload"}, "DefaultHoodieRecordPayload", EventTime()),
    ],
)
def test_merger_of_a_table(properties: dict[str, str], override: str, expected: object) -> None:
    assert merger_of(config(**properties), override) == expected


def test_merger_with_update_columns_survives_pickling() -> None:
    merger = merger_of(config(), update_columns=["V"])
    assert merger == UpdateColumns(OverwriteWithLatest(), frozenset({"v"}))
    assert pickle.loads(pickle.dumps(merger)) == merger


def test_unknown_or_contradicting_payload_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="merged by HoodieJsonPayload, code that this engine does not have"):
        merger_of(config(compaction_payload_class="org.apache.hudi.common.HoodieJsonPayload"))
    with pytest.raises(UnsupportedTableError, match=r"com\.acme\.DefaultHoodieRecordPayload"):
        merger_of(config(compaction_payload_class="com.acme.DefaultHoodieRecordPayload"))
    with pytest.raises(OptionError, match=r"com\.acme\.DefaultHoodieRecordPayload"):
        merger_of(config(), "com.acme.DefaultHoodieRecordPayload")
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.record\.merge\.strategy\.id=1-2-3"):
        merger_of(config(record_merge_strategy_id="1-2-3"))
    with pytest.raises(OptionError, match="Nonsense"):
        merger_of(config(), "Nonsense")
    with pytest.raises(OptionError, match="the table merges by DefaultHoodieRecordPayload"):
        merger_of(config(compaction_payload_class=f"{MODELS}DefaultHoodieRecordPayload"), "PartialUpdateAvroPayload")
