"""The metadata tables that Hudi wrote say what files, footers, rows and commits say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.format.bloom import BloomFilter
from lakehouse_engine.format.file_names import PARTITION_METAFILE, file_id_of
from lakehouse_engine.format.log.blocks import DATA_BLOCKS
from lakehouse_engine.format.log.data_block import decode_data_block
from lakehouse_engine.format.log.reader import read_blocks
from lakehouse_engine.metadata_table.answers import (
    Statistics,
    all_record_locations,
    bloom_filters,
    column_statistics,
    listed_files,
    partition_paths,
    partition_statistics,
    record_locations,
    rows_by_partition,
)
from lakehouse_engine.metadata_table.partitions import BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.instant import parse_instant_time
from lakehouse_engine.model.keys import FILE_NAME, PARTITION_PATH, RECORD_KEY
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture

ROOT = fixtures_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

HUDI = Path("/") if ROOT is None else ROOT / "hudi-spark"
TIMELINES = {name: (HUDI / f"{name}.timeline.json").read_text() for name in spark_fixtures(EVERY_VERSION)}
TABLES = [name for name, files in TIMELINES.items() if "metadata/files/" in files]


LOST_KEYS = {f"{version}/mor_metadata": {"k0006"} for version in ("v6-0.15.0", "v8-1.2.0", "v9-1.2.0")}
"""Keys that Hudi's own record index lacks: deleted in a log, then written again. Hudi's SIMPLE index found them in the base file, and took
them for updates, of which the record index is told nothing.
"""


def with_partition(partition: str) -> list[str]:
    return [name for name in TABLES if f"metadata/{partition}/" in TIMELINES[name]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, MetadataTable]:
    """The metadata table of each fixture, opened once."""

    class Opened(dict[str, MetadataTable]):
        def __missing__(self, name: str) -> MetadataTable:
            folder = unpack_spark_fixture(name, tmp_path_factory.mktemp(name.replace("/", "-")))
            self[name] = found = MetadataTable.open(TableState.load(LocalStorage(str(folder))))
            return found

    return Opened()


def stored(table: MetadataTable, path: str) -> dict[str, int]:
    entries = table.data.storage.list(path)
    return {entry.name: entry.size for entry in entries if not entry.is_directory and entry.name != PARTITION_METAFILE}


def footer_of(table: MetadataTable, path: str, name: str) -> pq.FileMetaData:
    return pq.read_metadata(Path(table.data.storage.root) / path / name)


def base_files(table: MetadataTable) -> pa.Table:
    files = listed_files(table)
    return files.filter(pc.ends_with(files["name"], ".parquet"))


def test_there_are_tables_of_every_version_and_partition() -> None:
    assert {name.split("/")[0] for name in TABLES} >= {"v6-0.15.0", "v8-1.2.0", "v9-1.2.0"}
    assert all(with_partition(partition) for partition in (COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS, RECORD_INDEX))


@pytest.mark.parametrize("name", TABLES)
def test_files_are_those_of_the_directories_with_their_sizes(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    listed = rows_by_partition(listed_files(table))
    assert set(listed) <= set(partition_paths(table))
    assert set(table.data.view.partitions()) <= set(partition_paths(table))
    for path in partition_paths(table):
        found = dict(zip(listed[path]["name"].to_pylist(), listed[path]["size"].to_pylist(), strict=True)) if path in listed else {}
        assert found == stored(table, path)


@pytest.mark.parametrize("name", TABLES)
def test_files_have_the_sizes_that_their_commits_say(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    files = listed_files(table)
    sizes = {(row["partition_path"], row["name"]): row["size"] for row in files.to_pylist()}
    checked = 0
    for instant in table.data.timeline.completed().writes():
        for stat in table.data.commit_metadata(instant).write_stats():
            size = sizes.get((stat.partition_path or "", (stat.path or "").rpartition("/")[2]))
            if size is not None and stat.file_size_in_bytes:
                assert size == stat.file_size_in_bytes
                checked += 1
    assert checked


@pytest.mark.parametrize("name", TABLES)
def test_latest_slices_are_made_of_listed_files(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    listed = {f"{row['partition_path']}/{row['name']}".lstrip("/") for row in listed_files(table).to_pylist()}
    for piece in table.data.view.latest_slices():
        paths = [log.path for log in piece.log_files] + ([] if piece.base_file is None else [piece.base_file.path])
        assert set(paths) <= listed


def bounds_in(footer: pq.FileMetaData, place: int) -> tuple[object, object, dict[str, int | None]]:
    """Least and greatest value, and counts, of a column of a Parquet file."""
    chunks = [footer.row_group(group).column(place) for group in range(footer.num_row_groups)]
    known = [chunk.statistics for chunk in chunks if chunk.statistics is not None and chunk.statistics.has_min_max]
    counts: dict[str, int | None] = {
        "valueCount": sum(chunk.num_values for chunk in chunks),
        "nullCount": sum(chunk.statistics.null_count for chunk in chunks if chunk.statistics is not None),
        "totalSize": sum(chunk.total_compressed_size for chunk in chunks),
        "totalUncompressedSize": sum(chunk.total_uncompressed_size for chunk in chunks),
    }
    return min((one.min for one in known), default=None), max((one.max for one in known), default=None), counts


@pytest.mark.parametrize("name", with_partition(COLUMN_STATS))
def test_statistics_of_base_files_are_those_of_their_footers(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    files = base_files(table)
    first = footer_of(table, files["partition_path"][0].as_py(), files["name"][0].as_py())
    columns = [field for field in first.schema.to_arrow_schema() if not pa.types.is_nested(field.type)]
    known = column_statistics(table, [field.name for field in columns])
    checked = 0
    for number in range(files.num_rows):
        path, file_name = files["partition_path"][number].as_py(), files["name"][number].as_py()
        footer = footer_of(table, path, file_name)
        places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
        for field in columns:
            row = known.of_files(field.name, files.slice(number, 1), field.type).to_pylist()[0]
            if row["valueCount"] is None or field.name not in places:
                continue
            least, greatest, counts = bounds_in(footer, places[field.name])
            assert {name: row[name] for name in counts} == counts
            checked += 1
            # Hudi writes zeros for columns without values; numbers of older versions do not say what time they are.
            if counts["nullCount"] == counts["valueCount"] or (row["least"] is None and pa.types.is_timestamp(field.type)):
                continue
            assert (row["least"], row["greatest"]) == (least, greatest)
    assert checked >= 5 * files.num_rows


def logged_rows(table: MetadataTable, path: str) -> pa.Table | None:
    """The rows in the data blocks of a log file."""
    blocks = [block for block in read_blocks(table.data.storage.read(path)) if block.type in DATA_BLOCKS]
    return pa.concat_tables([decode_data_block(block) for block in blocks]) if blocks else None


@pytest.mark.parametrize("name", [name for name in with_partition(COLUMN_STATS) if "/mor_" in name])
def test_statistics_of_logs_are_those_of_their_rows(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    files = listed_files(table)
    logs = files.filter(pc.starts_with(files["name"], "."))
    checked = 0
    for number in range(logs.num_rows):
        path, file_name = logs["partition_path"][number].as_py(), logs["name"][number].as_py()
        rows = logged_rows(table, f"{path}/{file_name}".lstrip("/"))
        if rows is None:
            continue
        plain = [field for field in rows.schema if not pa.types.is_nested(field.type) and not field.name.startswith("_hoodie")]
        known = column_statistics(table, [field.name for field in plain], [path])
        for field in plain:
            row = known.of_files(field.name, logs.slice(number, 1), field.type).to_pylist()[0]
            values = rows[field.name]
            if row["valueCount"] is None or values.null_count == len(values) or pa.types.is_timestamp(field.type):
                continue
            assert (row["least"], row["greatest"]) == (pc.min(values).as_py(), pc.max(values).as_py())
            assert (row["valueCount"], row["nullCount"]) == (len(values), values.null_count)
            checked += 1
    assert checked


@pytest.mark.parametrize("name", with_partition(PARTITION_STATS))
def test_statistics_of_partitions_are_those_of_their_latest_files(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    slices = [piece for piece in table.data.view.latest_slices() if piece.base_file is not None]
    first = footer_of(table, "", slices[0].base_file.path if slices[0].base_file else "")
    columns = [field for field in first.schema.to_arrow_schema() if not pa.types.is_nested(field.type)]
    names = [field.name for field in columns]
    of_files, of_partitions = column_statistics(table, names), partition_statistics(table, names)
    checked = 0
    # Hudi counts what a replace commit took away as well: too wide, never too narrow.
    replaced = table.data.view.replaced_as_of()
    for path in table.data.view.partitions():
        exact = not any(group.partition_path == path for group in replaced)
        mine = table.data.view.latest_slices(path)
        latest = [file.name for piece in mine for file in (piece.base_file, *piece.log_files) if file is not None]
        files = pa.table([[path] * len(latest), latest, [0] * len(latest)], names=["partition_path", "name", "size"])
        for field in columns:
            whole = of_partitions.of_partitions(field.name, pa.array([path]), field.type).to_pylist()[0]
            parts = of_files.of_files(field.name, files, field.type)
            if whole["valueCount"] is None:
                continue
            least, greatest = pc.min(parts["least"]).as_py(), pc.max(parts["greatest"]).as_py()
            if exact:
                assert whole["valueCount"] == pc.sum(parts["valueCount"]).as_py()
                assert whole["nullCount"] == pc.sum(parts["nullCount"]).as_py()
                assert (whole["least"], whole["greatest"]) == (least, greatest)
            elif least is not None:
                assert whole["least"] <= least <= greatest <= whole["greatest"]
            checked += 1
    assert checked


@pytest.mark.parametrize("name", with_partition(RECORD_INDEX))
def test_the_record_index_has_every_row_and_where_it_is(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    rows = read_arrow(plan_snapshot(table.data), meta_columns=True)
    places = zip(rows[RECORD_KEY].to_pylist(), rows[PARTITION_PATH].to_pylist(), rows[FILE_NAME].to_pylist(), strict=True)
    expected = {key: (path, file_id_of(file_name)) for key, path, file_name in places}
    located = pa.concat_tables(list(all_record_locations(table)))
    found = {row["key"]: (row["partition_path"], row["file_id"]) for row in located.to_pylist()}
    lost = LOST_KEYS.get(name, set())
    assert expected.keys() - found.keys() == lost
    assert found == {key: place for key, place in expected.items() if key not in lost}
    written = {int(parse_instant_time(one.requested_time).timestamp() * 1000) for one in table.data.timeline.completed().writes()}
    assert set(located["instant_millis"].to_pylist()) <= written
    asked = pa.array([*found, "absent"], pa.string())
    assert record_locations(table, asked).sort_by("key").equals(located.sort_by("key"))


@pytest.mark.parametrize("name", with_partition(BLOOM_FILTERS))
def test_bloom_filters_are_those_of_the_footers(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    files = base_files(table)
    for number, found in enumerate(bloom_filters(table, files)):
        texts = footer_of(table, files["partition_path"][number].as_py(), files["name"][number].as_py()).metadata
        kind = texts.get(b"hoodie_bloom_filter_type_code", b"SIMPLE").decode()
        assert found == BloomFilter.from_base64(texts[b"org.apache.hudi.bloomfilter"].decode(), kind)
    assert files.num_rows
    assert bloom_filters(table, files.slice(0, 1).set_column(1, "name", pa.array(["absent.parquet"]))) == [None]


@pytest.mark.parametrize("name", TABLES)
def test_every_partition_is_read_whole(name: str, opened: dict[str, MetadataTable]) -> None:
    table = opened[name]
    for partition in table.partitions:
        records = list(table.records(partition))
        assert sum(len(one.keys) for one in records) == sum(len(set(one.keys.to_pylist())) for one in records) > 0
        for one in records:
            again = table.with_keys(partition, one.keys)
            assert sorted(again.keys.to_pylist()) == sorted(one.keys.to_pylist())


def test_statistics_that_are_not_there_are_null(opened: dict[str, MetadataTable]) -> None:
    table = opened[with_partition(COLUMN_STATS)[0]]
    found = Statistics.of(table.with_prefixes(COLUMN_STATS, [])).of_files("id", base_files(table).slice(0, 1), pa.int64())
    assert [column[0].as_py() for column in found.columns] == [None] * 6
