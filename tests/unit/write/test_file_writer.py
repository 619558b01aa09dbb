"""What a base file must be so that Hudi reads and rewrites it without loss, seen in the written Parquet (table format, "Base files")."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.format.bloom import BloomFilter, build_bloom_filter, filter_entries
from lakehouse_engine.model.keys import META_COLUMNS
from tests.support.table_builder import RICH, TableBuilder, rich_row

KEYED = pa.schema([("id", pa.string()), ("v", pa.int64())])


def files_of(built: TableBuilder) -> list[Path]:
    return sorted(path for path in built.path.rglob("*.parquet") if ".hoodie" not in path.relative_to(built.path).parts)


def live_file(built: TableBuilder) -> pq.ParquetFile:
    """The base file of a table of one file group."""
    piece = built.table.state.view.latest_slices()[0]
    assert piece.base_file is not None
    return pq.ParquetFile(built.path / piece.base_file.path)


@pytest.fixture(params=["written once", "merged"])
def rich(request: pytest.FixtureRequest, tmp_path: Path) -> pq.ParquetFile:
    built = TableBuilder.create(tmp_path / "t")
    built.bulk_insert([rich_row(number) for number in range(20)])
    if request.param == "merged":
        built.upsert([rich_row(number, seed=1) for number in range(15, 25)])
    return live_file(built)


def columns(file: pq.ParquetFile) -> dict[str, Any]:
    return {file.schema.column(index).path: file.schema.column(index) for index in range(len(file.schema))}


def test_decimals_are_fixed_bytes_of_the_least_length(rich: pq.ParquetFile) -> None:
    for name, length in (("price", 5), ("huge", 16)):
        column = columns(rich)[name]
        assert (column.physical_type, column.length) == ("FIXED_LEN_BYTE_ARRAY", length)


def test_lists_have_three_levels_named_list_and_element(rich: pq.ParquetFile) -> None:
    paths = set(columns(rich))
    assert {"tags.list.element", "parts.list.element.a", "parts.list.element.b", "address.zips.list.element"} <= paths
    assert {"attrs.key_value.key", "attrs.key_value.value"} <= paths


def test_every_column_is_optional_and_the_meta_columns_come_first(rich: pq.ParquetFile) -> None:
    assert rich.schema_arrow.names[:5] == list(META_COLUMNS)
    assert rich.schema_arrow.names[5:] == RICH.names
    for path, column in columns(rich).items():
        assert column.max_definition_level >= 1, path
    assert all(field.nullable for field in rich.schema_arrow)


def test_timestamps_are_micros_of_utc_and_dates_int32(rich: pq.ParquetFile) -> None:
    at, born = columns(rich)["at"], columns(rich)["born"]
    assert at.physical_type == "INT64"
    assert json.loads(at.logical_type.to_json()) | {"is_from_converted_type": False, "force_set_converted_type": False} == {
        "Type": "Timestamp",
        "isAdjustedToUTC": True,
        "timeUnit": "microseconds",
        "is_from_converted_type": False,
        "force_set_converted_type": False,
    }
    assert (born.physical_type, born.converted_type) == ("INT32", "DATE")
    assert columns(rich)["raw"].logical_type.type == "NONE"


def test_the_footer_has_what_hudis_indexes_and_readers_ask_for(rich: pq.ParquetFile) -> None:
    footer = rich.metadata.metadata
    keys = rich.read(["_hoodie_record_key"]).column(0)
    avro = json.loads(footer[b"parquet.avro.schema"])
    assert [field["name"] for field in avro["fields"]] == [*META_COLUMNS, *RICH.names]
    assert all(field["type"][0] == "null" and field["default"] is None for field in avro["fields"])
    assert footer[b"writer.model.name"] == b"avro"
    assert footer[b"hoodie_min_record_key"].decode() == min(keys.to_pylist())
    assert footer[b"hoodie_max_record_key"].decode() == max(keys.to_pylist())
    assert footer[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"
    bloom = BloomFilter.from_base64(footer[b"org.apache.hudi.bloomfilter"].decode(), "DYNAMIC_V0")
    assert bloom.might_contain(keys).all()
    expected = build_bloom_filter(keys, kind="DYNAMIC_V0", entries=filter_entries(len(keys)), fpp=0.1, max_entries=0)
    assert bloom.to_base64() == expected.to_base64()


def filter_of(built: TableBuilder) -> BloomFilter:
    footer = live_file(built).metadata.metadata
    return BloomFilter.from_base64(footer[b"org.apache.hudi.bloomfilter"].decode(), footer[b"hoodie_bloom_filter_type_code"].decode())


@pytest.mark.parametrize(
    ("index", "given", "fpp"),
    [
        ("BLOOM", {}, 1e-3),
        ("GLOBAL_BLOOM", {}, 1e-3),
        ("SIMPLE", {}, 0.1),
        ("AUTO", {}, 0.1),
        ("SIMPLE", {"hoodie.index.bloom.fpp": 0.01}, 0.01),
    ],
)
def test_a_filter_that_no_index_asks_is_small(index: str, given: dict[str, float], fpp: float, tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", KEYED, index=index, options=given)
    built.bulk_insert([{"id": f"{number}", "v": 1} for number in range(3000)])
    keys = pa.array([f"{number}" for number in range(3000)])
    assert filter_of(built) == build_bloom_filter(keys, kind="DYNAMIC_V0", entries=filter_entries(3000), fpp=fpp, max_entries=0)


def test_whose_index_asks_filters_gets_better_ones_with_the_next_write(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", KEYED, index="SIMPLE")
    built.bulk_insert([{"id": f"{number}", "v": 1} for number in range(3000)])
    weak = filter_of(built)
    built.upsert([{"id": "7", "v": 2}])
    assert filter_of(built) == weak
    built.options["hoodie.index.type"] = "BLOOM"
    built.upsert([{"id": "7", "v": 3}, {"id": "new", "v": 3}])
    better = filter_of(built)
    assert (weak.serves(1e-3), better.serves(1e-3), better.serves(1e-9)) == (False, True, False)
    keys = pa.array([*(f"{number}" for number in range(3000)), "new"])
    assert better == build_bloom_filter(keys, kind="DYNAMIC_V0", entries=filter_entries(3001), fpp=1e-3, max_entries=0)
    del built.options["hoodie.index.type"]
    built.upsert([{"id": "8", "v": 4}])
    assert filter_of(built) == better, "one that lets fewer pass serves as well"
    built.check()


def test_the_key_range_is_in_the_order_of_utf16_code_units(tmp_path: Path) -> None:
    # U+FF21 sorts after U+1F642 in Java, whose surrogates start at U+D800, and before it in UTF-8.
    built = TableBuilder.create(tmp_path / "t", KEYED)
    built.bulk_insert([{"id": key, "v": 1} for key in ("a", "\uff21", "\U0001f642")])
    footer = live_file(built).metadata.metadata
    assert footer[b"hoodie_min_record_key"].decode() == "a"
    assert footer[b"hoodie_max_record_key"].decode() == "\uff21"


def test_a_file_without_rows_has_a_filter_and_no_key_range(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", KEYED)
    built.bulk_insert([{"id": "a", "v": 1}])
    built.delete([{"id": "a", "v": 1}])
    file = live_file(built)
    assert file.metadata.num_rows == 0
    assert b"org.apache.hudi.bloomfilter" in file.metadata.metadata
    assert b"hoodie_min_record_key" not in file.metadata.metadata
    built.check()


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_a_filter_that_is_inherited_over_many_upserts_misses_no_key(kind: str, tmp_path: Path) -> None:
    options = {"hoodie.bloom.index.filter.type": kind, "hoodie.index.bloom.num_entries": 100}
    built = TableBuilder.create(tmp_path / "t", KEYED, index="GLOBAL_BLOOM", options=options)
    for step in range(12):
        low = step * 150
        built.upsert([{"id": f"ключ{number}", "v": step} for number in range(max(0, low - 40), low + 150)])
        if step % 4 == 3:
            built.delete([{"id": f"ключ{number}", "v": 0} for number in range(low, low + 30)])
        file = live_file(built)
        footer = file.metadata.metadata
        bloom = BloomFilter.from_base64(
            footer[b"org.apache.hudi.bloomfilter"].decode(), footer[b"hoodie_bloom_filter_type_code"].decode()
        )
        assert bloom.might_contain(file.read(["_hoodie_record_key"]).column(0)).all()
    built.check_snapshot()
    strangers = pa.array([f"x{number}" for number in range(2000)])
    assert bloom.might_contain(strangers).mean() < 0.05


def test_copied_rows_keep_their_commit_and_seqno_and_get_the_new_files_name(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", KEYED)
    built.bulk_insert([{"id": key, "v": 1} for key in "abc"])
    before = {row["id"]: row for row in live_file(built).read().to_pylist()}
    result = built.upsert([{"id": "b", "v": 2}, {"id": "d", "v": 2}])
    file = live_file(built)
    after = {row["id"]: row for row in file.read().to_pylist()}
    piece = built.table.state.view.latest_slices()[0]
    assert piece.base_file is not None
    assert {row["_hoodie_file_name"] for row in after.values()} == {piece.base_file.name}
    for key in "ac":
        assert {**after[key], "_hoodie_file_name": ""} == {**before[key], "_hoodie_file_name": ""}
    assert {after[key]["_hoodie_commit_time"] for key in "bd"} == {result.instant}
    seqnos = [row["_hoodie_commit_seqno"] for row in after.values()]
    assert len(set(seqnos)) == len(seqnos)
    assert all(row["_hoodie_commit_seqno"].startswith(row["_hoodie_commit_time"] + "_") for row in after.values())


def test_seqnos_are_unique_over_all_files_of_a_commit(tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", partition_by=["region"])
    built.bulk_insert([rich_row(number) for number in range(30)])
    built.upsert([rich_row(number, seed=1, region=("north", "east")[number % 2]) for number in range(20, 60)])
    table = built.table.to_arrow(meta_columns=True)
    assert len(set(table.column("_hoodie_commit_seqno").to_pylist())) == table.num_rows


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_files_of_many_row_groups_are_searched_and_merged_in_full(rows: int, tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", ordering="ts", options={"lakehouse.parquet.row.group.rows": rows})
    built.bulk_insert([rich_row(number) for number in range(20)])
    assert live_file(built).num_row_groups > 1
    built.upsert([rich_row(number, seed=1) for number in (0, 6, 7, 13, 19, 20, 21)])
    built.delete([rich_row(number) for number in (1, 7, 18)])
    built.upsert([rich_row(number, seed=2) for number in range(0, 30, 5)])
    built.check()


@pytest.mark.parametrize("codec", ["ZSTD", "SNAPPY", "GZIP", "LZ4_RAW", "UNCOMPRESSED"])
def test_the_codec_is_the_one_asked_for(codec: str, tmp_path: Path) -> None:
    built = TableBuilder.create(tmp_path / "t", KEYED, options={"hoodie.parquet.compression.codec": codec})
    built.bulk_insert([{"id": "a", "v": 1}])
    assert live_file(built).metadata.row_group(0).column(5).compression in (codec, codec.removesuffix("_RAW"))
    built.check()
