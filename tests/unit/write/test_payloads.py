"""Every payload class of Hudi that a fixed rule describes, on both table types: the rows that Hudi's rules leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError, OptionError, SchemaIncompatibleError, UnsupportedTableError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.payload_batches import SCENARIOS, Scenario

PAYLOAD = "hoodie.datasource.write.payload.class"


def make(path: Path, scenario: Scenario, table_type: str = "cow", **properties: str) -> HoodieTable:
    given = {PAYLOAD: scenario.payload, **properties}
    create_table(
        LocalStorage(str(path)),
        TableSpec("t", scenario.schema, record_key=["id"], ordering_fields=[scenario.order], table_type=table_type, properties=given),
    )
    return HoodieTable.open(str(path))


def rows_of(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("kind", ["cow", "mor", "mor avro", "mor compacted", "mor buckets"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.payload)
def test_batches_leave_the_rows_of_hudis_rules(tmp_path: Path, scenario: Scenario, kind: str) -> None:
    properties = {
        "mor avro": {"hoodie.logfile.data.block.format": "AVRO"},
        "mor buckets": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    }.get(kind, {})
    # New keys leave the slices alone that have logs to get.
    table = make(tmp_path / "t", scenario, kind[:3], **properties, **{"hoodie.parquet.small.file.limit": "0"})
    expected = scenario.expected(logs={"mor": "updates", "mor avro": "updates", "mor buckets": "all"}.get(kind, ""))
    for batch in scenario.batches():
        table.upsert(scenario.table(batch))
        if kind == "mor compacted":
            table.compact()
    assert rows_of(table) == expected
    assert table.config.properties["hoodie.compaction.payload.class"].endswith("." + scenario.payload)
    if table.config.table_type.value == "MERGE_ON_READ":
        table.compact()
        assert rows_of(table) == expected


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.payload)
def test_write_names_the_payload_of_a_copy_on_write_table_that_names_none(tmp_path: Path, scenario: Scenario) -> None:
    make(tmp_path / "t", scenario)
    ConfigStore(LocalStorage(str(tmp_path / "t"))).update({"hoodie.compaction.payload.class": None})
    table = HoodieTable.open(str(tmp_path / "t"))
    for batch in scenario.batches():
        table.upsert(scenario.table(batch), options={PAYLOAD: f"org.apache.hudi.common.model.{scenario.payload}"})
    assert rows_of(table) == scenario.expected()


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_foreign_payload_refuses_writes_and_merged_reads_only(tmp_path: Path, table_type: str) -> None:
    scenario = SCENARIOS[0]
    table = make(tmp_path / "t", scenario, table_type, **{"hoodie.parquet.small.file.limit": "0"})
    first, second, _ = scenario.batches()
    table.upsert(scenario.table(first))
    table.upsert(scenario.table(second))
    ConfigStore(LocalStorage(str(tmp_path / "t"))).update({"hoodie.compaction.payload.class": "com.acme.EventTimeAvroPayload"})
    table = HoodieTable.open(str(tmp_path / "t"))
    before = sorted(path.name for path in (tmp_path / "t" / ".hoodie").iterdir())
    with pytest.raises(UnsupportedTableError, match=r"com\.acme\.EventTimeAvroPayload.*Go on writing it with Hudi"):
        table.upsert(scenario.table(first))
    assert sorted(path.name for path in (tmp_path / "t" / ".hoodie").iterdir()) == before
    if table_type == "mor":
        with pytest.raises(UnsupportedTableError, match=r"com\.acme\.EventTimeAvroPayload"):
            table.to_arrow()
        assert table.to_arrow(query="read_optimized").num_rows
    else:
        assert rows_of(table) == scenario.expected(2)


@pytest.mark.parametrize("kind", ["cow", "mor", "mor buckets"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.payload)
def test_rows_computed_from_stored_ones_are_stored_as_they_are(tmp_path: Path, scenario: Scenario, kind: str) -> None:
    """As by UPDATE ... SET a = NULL: no payload class fills the null, or keeps the row of equal ordering values."""
    properties = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"} if kind == "mor buckets" else {}
    table = make(tmp_path / "t", scenario, kind[:3], **properties, **{"hoodie.parquet.small.file.limit": "0"})
    for batch in scenario.batches():
        table.upsert(scenario.table(batch))
    computed = [{**row, "a": None} for row in rows_of(table)]
    table.upsert(scenario.table(computed), as_given=True)
    assert rows_of(table) == computed
    late = [{**scenario.row(row["id"], 1, "late", "late")} for row in computed]
    if scenario.payload not in ("OverwriteWithLatestAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload", "AWSDmsAvroPayload"):
        table.upsert(scenario.table(late), as_given=True)
        assert rows_of(table) == computed
    if kind != "cow":
        table.compact()
        assert rows_of(table) == computed


def test_places_in_a_binary_log_compare_as_numbers(tmp_path: Path) -> None:
    scenario = next(one for one in SCENARIOS if one.order == "_event_seq")
    table = make(tmp_path / "t", scenario, "mor")
    for places in (["9.5"], ["10.4", "9.999", "10.3"], ["10.04"], ["9.6"]):
        table.upsert(scenario.table([{**scenario.row("k", 0, place), "_event_seq": place} for place in places]))
    assert [row["a"] for row in rows_of(table)] == ["10.4"]


@pytest.mark.parametrize("value", [None, "five", "1", "99999999999999999999.1"])
def test_row_without_a_place_in_the_binary_log_is_refused(tmp_path: Path, value: str | None) -> None:
    scenario = next(one for one in SCENARIOS if one.order == "_event_seq")
    table = make(tmp_path / "t", scenario)
    with pytest.raises(SchemaIncompatibleError, match="_event_seq"):
        table.upsert(scenario.table([{**scenario.row("k", 0, "a"), "_event_seq": value}]))
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_column_and_value_mark_deletions(tmp_path: Path, table_type: str) -> None:
    marker = {"hoodie.payload.delete.field": "b", "hoodie.payload.delete.marker": "bye"}
    scenario = SCENARIOS[1]
    table = make(tmp_path / "t", scenario, table_type, **marker)
    table.upsert(scenario.table([scenario.row(key, 10, "a1") for key in ("goes", "late", "stays")]))
    table.upsert(scenario.table([scenario.row(key, order, "a2", "bye") for key, order in (("goes", 11), ("late", 9), ("new", 1))]))
    assert [row["id"] for row in rows_of(table)] == ["late", "stays"]


def test_marker_of_a_write_counts_on_copy_on_write_and_is_refused_on_merge_on_read(tmp_path: Path) -> None:
    marker = {"hoodie.payload.delete.field": "b", "hoodie.payload.delete.marker": "bye"}
    scenario = SCENARIOS[1]
    gone = scenario.table([scenario.row("k", 11, "a2", "bye")])
    for table_type in ("cow", "mor"):
        table = make(tmp_path / table_type, scenario, table_type)
        table.upsert(scenario.table([scenario.row("k", 10, "a1")]))
        if table_type == "mor":
            with pytest.raises(OptionError, match="set them in the table"):
                table.upsert(gone, options=marker)
        else:
            table.upsert(gone, options=marker)
        assert table.to_arrow().num_rows == (table_type == "mor")


@pytest.mark.parametrize(
    ("payload", "properties", "message"),
    [
        ("HoodieJsonPayload", {}, "HoodieJsonPayload"),
        ("com.acme.DefaultHoodieRecordPayload", {}, r"com\.acme"),
        ("AWSDmsAvroPayload", {}, "needs a column 'Op'"),
        ("MySqlDebeziumAvroPayload", {}, "_event_seq"),
        ("DefaultHoodieRecordPayload", {"hoodie.payload.delete.field": "b"}, "needs hoodie.payload.delete.marker"),
        ("EventTimeAvroPayload", {"hoodie.payload.delete.field": "b", "hoodie.payload.delete.marker": "x"}, "goes with"),
    ],
)
def test_table_that_could_not_be_merged_is_not_created(tmp_path: Path, payload: str, properties: dict[str, str], message: str) -> None:
    with pytest.raises(LakehouseError, match=message):
        make(tmp_path / "t", Scenario(payload), **properties)
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


NESTED = pa.schema([("id", pa.int64()), ("n", pa.struct([("t", pa.int64()), ("u", pa.string())])), ("v", pa.string())])


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "SIMPLE", "BUCKET"])
@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("payload", ["DefaultHoodieRecordPayload", "PartialUpdateAvroPayload", "OverwriteWithLatestAvroPayload"])
def test_ordering_field_in_a_struct_orders_rows(tmp_path: Path, payload: str, table_type: str, index: str) -> None:
    spec = TableSpec(
        "t",
        NESTED,
        record_key=["id"],
        ordering_fields=["n.t"],
        table_type=table_type,
        properties={PAYLOAD: payload, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"},
    )
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    table = HoodieTable.open(str(tmp_path / "t"))

    def upsert(*rows: tuple[int, int | None, str]) -> None:
        table.upsert(pa.Table.from_pylist([{"id": key, "n": {"t": t, "u": v}, "v": v} for key, t, v in rows], schema=NESTED))

    upsert((1, 10, "a"), (2, 10, "a"), (3, None, "a"), (4, 10, "a"))
    upsert((1, 9, "b"), (2, 11, "b"), (3, 1, "b"), (4, 12, "first"), (4, 11, "late"))
    upsert((2, 10, "c"), (5, 3, "c"))
    late = payload.startswith("Overwrite") and table_type == "cow"
    expected = {1: "b" if payload.startswith("Overwrite") else "a", 2: "c" if late else "b", 3: "b", 4: "first", 5: "c"}
    assert {row["id"]: row["v"] for row in rows_of(table)} == expected
    if table_type == "mor":
        table.compact()
        assert {row["id"]: row["v"] for row in rows_of(table)} == expected


def test_ordering_field_that_is_no_member_of_a_struct_is_refused_at_creation(tmp_path: Path) -> None:
    for name in ("n.x", "v.t", "n"):
        with pytest.raises(SchemaIncompatibleError, match=f"'{name}'"):
            create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", NESTED, record_key=["id"], ordering_fields=[name]))


MODE = "hoodie.write.record.merge.mode"


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize(
    ("mode", "payload"), [("EVENT_TIME_ORDERING", "DefaultHoodieRecordPayload"), ("commit_time_ordering", "OverwriteWithLatestAvroPayload")]
)
def test_merge_mode_of_hudi_1x_makes_the_table_of_the_payload_that_it_means(
    tmp_path: Path, table_type: str, mode: str, payload: str
) -> None:
    scenario = next(one for one in SCENARIOS if one.payload == payload)
    spec = TableSpec("t", scenario.schema, record_key=["id"], ordering_fields=["ts"], table_type=table_type, properties={MODE: mode})
    properties = create_table(LocalStorage(str(tmp_path)), spec).properties
    assert properties["hoodie.compaction.payload.class"].endswith("." + payload)
    assert not [key for key in properties if "merge.mode" in key]
    table = HoodieTable.open(str(tmp_path))
    for batch in scenario.batches()[:2]:
        table.upsert(scenario.table(batch), options={"hoodie.record.merge.mode": mode})
    assert rows_of(table) == scenario.expected(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({MODE: "CUSTOM"}, f"name a payload class in {PAYLOAD}"),
        ({MODE: "EVENT_TIME_ORDERING", PAYLOAD: "OverwriteWithLatestAvroPayload"}, "contradicts"),
        ({MODE: "COMMIT_TIME_ORDERING"}, "the table merges by DefaultHoodieRecordPayload"),
        ({MODE: "LATEST"}, "expected one of EVENT_TIME_ORDERING"),
    ],
)
def test_merge_mode_that_says_something_else_is_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    scenario = SCENARIOS[1]
    table = make(tmp_path / "t", scenario)
    with pytest.raises(OptionError, match=message):
        table.upsert(scenario.table(scenario.batches()[0]), options=options)
    assert table.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("stored", "asked"), [("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"), ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")]
)
def test_merge_mode_of_a_write_contradicts_the_mode_of_the_table(tmp_path: Path, stored: str, asked: str) -> None:
    scenario = SCENARIOS[1]
    make(tmp_path / "t", scenario)
    ConfigStore(LocalStorage(str(tmp_path / "t"))).update({"hoodie.compaction.payload.class": None, "hoodie.record.merge.mode": stored})
    table, rows = HoodieTable.open(str(tmp_path / "t")), scenario.table(scenario.batches()[0])
    with pytest.raises(OptionError, match=stored):
        table.upsert(rows, options={MODE: asked})
    table.upsert(rows, options={MODE: stored})
    assert table.to_arrow().num_rows == rows.num_rows


@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.parametrize("payload", ["EventTimeAvroPayload", "DefaultHoodieRecordPayload", "PartialUpdateAvroPayload"])
def test_a_late_deletion_that_comes_under_another_partition(payload: str, table_type: str, tmp_path: Path) -> None:
    """It is one of the key wherever that is stored, as far as the payload lets late ones delete."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])
    named = {PAYLOAD: f"org.apache.hudi.common.model.{payload}"}
    spec = TableSpec("t", schema, ["id"], ["ts"], ["p"], table_type, properties=named)
    create_table(LocalStorage(str(tmp_path / "t")), spec)
    table = HoodieTable.open(str(tmp_path / "t"))
    table.upsert(pa.table([[1, 2, 3], ["x"] * 3, [5] * 3, [False] * 3], schema=schema))
    table.upsert(pa.table([[1, 2], ["x", "y"], [1, 1], [True, True]], schema=schema))
    expected = [1, 2, 3] if payload.startswith("Default") else [3]
    assert sorted(table.to_arrow()["id"].to_pylist()) == expected


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_key_that_is_deleted_twice_is_no_duplicate(table_type: str, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", schema, ["id"], table_type=table_type))
    table = HoodieTable.open(str(tmp_path / "t"), options={"lakehouse.duplicate.source.keys": "ERROR"})
    table.insert(pa.table([[1, 1, 2], ["a", "b", "c"]], schema=schema))
    table.delete(pa.table({"id": pa.array([1, 1], pa.int64())}))
    assert table.to_arrow()["id"].to_pylist() == [2]
