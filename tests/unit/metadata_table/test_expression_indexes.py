"""Expression indexes: built, kept up by every action, read back; what is in them is what the files say."""

from __future__ import annotations

import datetime as dt
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.metadata_table.definitions import expression_index_definition
from lakehouse_engine.format.metadata_table.payload import BLOOM, STATS
from lakehouse_engine.metadata_table.building.naming import define_indexes, name_partitions
from lakehouse_engine.metadata_table.expressions.index import FilterShape, kept_expressions
from lakehouse_engine.metadata_table.expressions.records import file_records, partition_records
from lakehouse_engine.metadata_table.records.joining import joined
from lakehouse_engine.metadata_table.records.statistics import files_of
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.table_config import TableType
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.services.metadata import building
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("name", pa.string()),
        ("d", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
OPTIONS = {
    "hoodie.write.lock.wait_time_ms": 500,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.metadata.compact.max.delta.commits": 50,  # what a compaction merges cannot be taken back
}


def rows(*ids: int, name: str | None = "N", day: int = 0) -> pa.Table:
    columns = {
        "id": [f"k{one}" for one in ids],
        "part": [f"p{one % 2}" for one in ids],
        "ts": [1_700_000_000 + 86_400 * (one + day) if one % 5 else None for one in ids],
        "name": [None if name is None else f"{name}{one}" for one in ids],
        "d": [dt.date(2000 + one, 1, 3) for one in ids],
        "at": [dt.datetime(2010 + one, 6, 3, tzinfo=dt.timezone.utc) for one in ids],
    }
    return pa.table(columns, SCHEMA)


def made(folder: Path, table_type: str = "mor", version: int = 9, *, by: tuple[str, ...] = ("part",)) -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=by, table_type=table_type, version=TableVersion(version))
    create_table(LocalStorage(str(folder / "t")), spec)
    table = HoodieTable.open(str(folder / "t"), options=OPTIONS)
    table.insert(rows(1, 2, 3))
    return table


def create_all(table: HoodieTable) -> None:
    table.create_index("day", columns=["ts"], expression="from_unixtime", options={"format": "yyyy-MM-dd"})
    table.create_index("low", columns=["name"], type="column_stats", expression="lower")
    options = {"numentries": "50", "fpp": "0.01"}
    if table.config.table_type is TableType.COPY_ON_WRITE:
        table.create_index("keys", columns=["id"], type="bloom_filters", expression="upper", options=options)
    else:  # as Hudi builds it before the first log
        version = "V2" if int(table.config.version) == 9 else "V1"
        defined = expression_index_definition("expr_index_keys", "bloom_filters", "upper", "id", options, version)
        building.build(table.storage, ["expr_index_keys"], define=[defined], lock_timeout_ms=500)
    if int(table.config.version) == 9:
        table.create_index("year", columns=["d"], type="expr_index", options={"expr": "year"})
        table.create_index("month", columns=["at"], expression="month")


def state_of(table: HoodieTable) -> TableState:
    return TableState.load(table.storage)


def stored(state: TableState, partition: str) -> dict[bytes, Any]:
    found = MetadataTable.open(state).with_prefixes(partition, [b""])
    columns = zip(*(found.payloads.column(one).to_pylist() for one in (STATS, BLOOM)), strict=True)
    return dict(zip(found.keys.to_pylist(), columns, strict=True))


def assert_whole(table: HoodieTable) -> None:
    """The records of the newest slices' files, and of partitions, are those that the files have; deleted files have none."""
    state = state_of(table)
    kept = kept_expressions(state, state.config.metadata_partitions)
    assert kept
    slices = [piece for path in state.view.partitions() for piece in state.view.latest_slices(path)]
    for name, index in kept.items():
        expected = file_records(state, index, [file for piece in slices for file in files_of(piece)])
        if index.shape is None and state.config.partition_fields:
            expected = joined([expected, partition_records(state, index, slices, expected)])
        columns = zip(*(expected.payloads.column(one).to_pylist() for one in (STATS, BLOOM)), strict=True)
        wanted = dict(zip(expected.keys.to_pylist(), columns, strict=True))
        known = stored(state, name)
        assert {key: known.get(key) for key in wanted} == wanted
        tight = {key for key, (stats, _) in known.items() if stats is not None and stats["isTightBound"]}
        assert tight <= wanted.keys()
    assert check_metadata_table(state).findings == ()


@pytest.mark.parametrize(("table_type", "version"), [("mor", 9), ("cow", 9), ("mor", 8)])
def test_every_action_keeps_the_indexes_up(tmp_path: Path, table_type: str, version: int) -> None:
    table = made(tmp_path, table_type, version)
    table.upsert(rows(2, day=40))
    create_all(table)
    partitions = table.config.metadata_partitions
    assert {"expr_index_day", "expr_index_low", "expr_index_keys", "files"} <= set(partitions)
    assert_whole(table)
    saved = table.savepoint()
    for step in (
        lambda: table.upsert(rows(1, 4, name="é")),
        lambda: table.insert(rows(7, 8, name=None)),
        lambda: table.delete(rows(3)),
        lambda: table.cluster() if table_type == "cow" else table.compact(),
        lambda: table.upsert(rows(2, 9, day=90)),
        lambda: table.rollback(),
        lambda: table.delete_partitions(["part=p0"]),
        lambda: table.clean(retain_commits=1),
    ):
        step()
        assert_whole(table)
        assert table.config.metadata_partitions == partitions
    table.restore(saved.instant)
    assert_whole(table)
    table.upsert(rows(1))
    assert_whole(table)
    assert table.config.metadata_partitions == partitions


def test_records_have_the_bounds_of_the_expression(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    create_all(table)
    table.insert(rows(20, 30, 40))
    found = {row["fileName"]: row for row, _ in stored(state_of(table), "expr_index_year").values()}
    ends = {name: (row["minValue"]["IntWrapper"]["value"], row["maxValue"]["IntWrapper"]["value"]) for name, row in found.items()}
    assert (ends["part=p0"], ends["part=p1"]) == ((2002, 2040), (2001, 2003))
    assert sorted(ends.values()) == [(2001, 2003), (2001, 2003), (2002, 2002), (2002, 2040), (2020, 2040)]
    one = found["part=p1"]
    assert (one["columnName"], one["isTightBound"], one["valueCount"], one["nullCount"]) == ("d", True, 2, 0)
    assert one["totalUncompressedSize"] == 2 * one["totalSize"]
    days = [row for row, _ in stored(state_of(table), "expr_index_day").values() if row["valueCount"] == 0]
    assert all(row["minValue"] is None and row["nullCount"] for row in days)


def test_filters_have_the_values_of_the_expression(tmp_path: Path) -> None:
    table = made(tmp_path, "mor")
    create_all(table)
    table.upsert(rows(2, 5))
    filters = [row for _, row in stored(state_of(table), "expr_index_keys").values()]
    known = [BloomFilter.from_base64(row["bloomFilter"].decode(), row["type"]) for row in filters]
    asked = pa.array(["K1", "K2", "K3", "K5", "k1"])
    found = sorted("".join("+" if there else "-" for there in one.might_contain(asked)) for one in known)
    assert found == sorted(["+-+--", "-+---", "-+---", "---+-"])
    assert {one.keys_per_row for one in known} == {50}


def test_a_file_whose_values_are_not_certain_has_no_filter(tmp_path: Path) -> None:
    table = made(tmp_path, "cow")
    table.create_index("low", columns=["name"], type="bloom_filters", expression="lower")
    table.insert(rows(5, name="É"))
    table.insert(rows(7, name=None))
    assert len(stored(state_of(table), "expr_index_low")) == 3
    assert_whole(table)


def test_a_table_without_partitions_has_records_of_files_only(tmp_path: Path) -> None:
    table = made(tmp_path, "cow", by=())
    create_all(table)
    table.upsert(rows(1, 9))
    assert not any(row["isTightBound"] for row, _ in stored(state_of(table), "expr_index_year").values())
    assert_whole(table)


def test_an_index_over_an_empty_table_gets_records_of_all_partitions(tmp_path: Path) -> None:
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", SCHEMA, ["id"], partition_by=["part"], version=TableVersion.NINE))
    table = HoodieTable.open(str(tmp_path / "t"), options=OPTIONS)
    create_all(table)
    assert stored(state_of(table), "expr_index_year") == {}
    table.insert(rows(1))
    table.insert(rows(2))
    assert_whole(table)


def test_old_calendars_rule_nothing_out(tmp_path: Path) -> None:
    table = made(tmp_path, "cow", by=())
    (piece,) = state_of(table).view.latest_slices()
    assert piece.base_file is not None
    path = tmp_path / "t" / piece.base_file.path
    content = pq.read_table(path)
    pq.write_table(content.replace_schema_metadata({b"org.apache.spark.legacyDateTime": b""}), path)
    state = state_of(table)
    define_indexes(state, [expression_index_definition("expr_index_m", "column_stats", "month", "d", {}, "V2")])
    name_partitions(state.advance(), put=["expr_index_m"], define=[])
    state = state_of(table)
    base = replace(piece.base_file, size=path.stat().st_size)
    records = file_records(state, kept_expressions(state, state.config.metadata_partitions)["expr_index_m"], [base])
    (one,) = records.payloads.column(STATS).to_pylist()
    assert (one["minValue"]["IntWrapper"]["value"], one["maxValue"]["IntWrapper"]["value"]) == (-(2**31), 2**31 - 1)


def test_an_index_that_is_not_computed_here_is_dropped_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = made(tmp_path, "cow")
    create_all(table)
    state = state_of(table)
    hour = expression_index_definition("expr_index_hour", "column_stats", "hour", "at", {}, "V2")
    name_partitions(state, put=["expr_index_hour"], define=[hour])
    with caplog.at_level(logging.WARNING):
        table.upsert(rows(1))
    assert [one for one in caplog.messages if "expr_index_hour in the metadata table" in one]
    assert "expr_index_hour" not in state_of(table).config.metadata_partitions
    definitions = json.loads((tmp_path / "t/.hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert definitions["expr_index_hour"]["indexFunction"] == "hour"
    assert_whole(table)


@pytest.mark.parametrize("partitions", [None, ["expr_index_year", "expr_index_keys"]])
def test_a_rebuild_goes_by_the_definitions(tmp_path: Path, partitions: list[str] | None) -> None:
    table = made(tmp_path)
    create_all(table)
    before = table.config.metadata_partitions
    assert {"expr_index_year", "expr_index_keys"} <= set(table.rebuild_metadata(partitions).built)
    assert state_of(table).config.metadata_partitions == before
    table.upsert(rows(1))
    assert_whole(table)


def test_a_definition_is_as_hudi_writes_it_and_goes_with_the_index(tmp_path: Path) -> None:
    table = made(tmp_path, version=8)
    create_all(table)
    path = tmp_path / "t/.hoodie/.index_defs/index.json"
    assert json.loads(path.read_text())["indexDefinitions"]["expr_index_day"] == {
        "indexName": "expr_index_day",
        "indexType": "column_stats",
        "indexFunction": "from_unixtime",
        "sourceFields": ["ts"],
        "indexOptions": {"expr": "from_unixtime", "format": "yyyy-MM-dd"},
        "version": "V1",
    }
    (shown,) = (one for one in table.indexes() if one.name == "day")
    assert (shown.type, shown.stored_as, shown.columns, shown.partition) == ("expr_index", "column_stats", ("ts",), "expr_index_day")
    assert table.drop_index("day").dropped == ("expr_index_day",)
    assert "expr_index_day" not in json.loads(path.read_text())["indexDefinitions"]
    assert not (tmp_path / "t/.hoodie/metadata/expr_index_day").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"columns": ["ts"], "type": "expr_index"}, OptionError, "index on an expression, and none is given"),
        ({"columns": ["ts"], "type": "column_stats"}, OptionError, "none is given"),
        ({"columns": ["ts", "d"], "expression": "year"}, OptionError, "about one column; i of t is given 2"),
        ({"columns": ["no"], "expression": "year"}, OptionError, "no top-level column 'no'"),
        ({"columns": ["name"], "expression": "abs"}, OptionError, "no function of an expression index"),
        ({"columns": ["name"], "expression": "lower", "options": {"expr": "upper"}}, OptionError, "two expressions"),
        ({"columns": ["name"], "expression": "identity"}, OptionError, "statistics of a whole column are those of column_stats"),
        ({"columns": ["at"], "expression": "hour"}, UnavailableError, "expr_index_i of t: hour of timestamp.*let Hudi build the index"),
        ({"columns": ["at"], "expression": "year", "type": "bloom_filters"}, UnavailableError, "time zone of the session"),
        ({"columns": ["id"], "type": "bloom_filters", "options": {"fpp": "2"}}, OptionError, "no Bloom filter is"),
        ({"columns": ["id"], "type": "bloom_filters", "options": {"numentries": "x"}}, OptionError, "is no number"),
        ({"columns": ["id"], "type": "secondary_index", "expression": "lower"}, OptionError, "only an index on an expression has"),
    ],
)
def test_what_does_not_fit_is_refused_with_nothing_changed(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    table = made(tmp_path, "cow")
    before = state_of(table).config
    with pytest.raises(error, match=words):
        table.create_index("i", **arguments)
    assert state_of(table).config == before
    assert not (tmp_path / "t/.hoodie/metadata").exists()


def test_what_makes_queries_of_hudi_wrong_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "new", "cow")
    table.create_index("low", columns=["name"], expression="lower")
    with pytest.raises(OptionError, match="an expression index on name already, low, and with two Hudi takes the wrong one"):
        table.create_index("up", columns=["name"], expression="upper")
    with pytest.raises(UnavailableError, match="writers of Hudi fail in a merge-on-read table with such an index"):
        made(tmp_path / "mor").create_index("keys", columns=["id"], type="bloom_filters", expression="upper")
    old = made(tmp_path / "old", "cow", 8)
    with pytest.raises(UnavailableError, match="in table version 8 queries of Hudi fail by an index on year"):
        old.create_index("y", columns=["d"], expression="year")
    assert old.create_index("d", columns=["d"], expression="date_add", options={"days": "1"}).built == ("expr_index_d", "files")


def test_version_6_has_none(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="expression indexes are for table versions 8 and 9"):
        made(tmp_path, "cow", 6).create_index("y", columns=["d"], expression="year")


def test_shapes_of_filters() -> None:
    assert FilterShape.of({}) == FilterShape("DYNAMIC_V0", 1e-9, None, 100_000)
    assert FilterShape.of({"filtertype": "SIMPLE", "maxentries": "7"}) == FilterShape("SIMPLE", 1e-9, None, 7)
    for wrong in ({"filtertype": "BLOCKED"}, {"numentries": "0"}, {"maxentries": "-1"}):
        with pytest.raises(OptionError, match="kinds: DYNAMIC_V0, SIMPLE"):
            FilterShape.of(wrong)
