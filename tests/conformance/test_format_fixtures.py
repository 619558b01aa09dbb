"""Every table that Apache Hudi wrote: each of its files is read and written back by `format/`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.format.avro.arrow_avro import arrow_to_avro, avro_to_arrow, with_meta_columns, without_meta_columns
from lakehouse_engine.format.bloom import BloomFilter, build_bloom_filter
from lakehouse_engine.format.file_names import (
    PARTITION_METAFILE,
    is_base_file_name,
    is_log_file_name,
    marker_path,
    parse_base_file,
    parse_log_file,
    parse_marker_path,
)
from lakehouse_engine.format.partition_metafile import parse_partition_metafile, render_partition_metafile
from lakehouse_engine.format.properties import parse_properties, render_properties, verify_checksum
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.format.v6.metadata_json import decode_commit_metadata, encode_commit_metadata, render_commit_metadata
from lakehouse_engine.format.v6.plans_codec import decode_plan, encode_plan
from lakehouse_engine.model import plans, savepoint
from lakehouse_engine.model.table_config import TableConfig
from tests.support.fixtures import rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture

_TABLES = [*spark_fixtures(), *(name for name in rs_fixtures() if "__v6_" in name)]
_NOT_HUDI = {".DS_Store"}

pytestmark = pytest.mark.skipif(not _TABLES, reason="the tables written by Apache Hudi are not here (LAKEHOUSE_FIXTURES)")


@pytest.fixture(scope="module", params=_TABLES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name: str = request.param
    target = tmp_path_factory.mktemp("table")
    return unpack_spark_fixture(name, target) if "/" in name else unpack_rs_fixture(name, target)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in _NOT_HUDI)


def _timelines(table: Path) -> list[Path]:
    """Of the table and, where it has one, of its metadata table."""
    return [path for path in (table / ".hoodie", table / ".hoodie/metadata/.hoodie") if path.is_dir()]


def _instant_files(table: Path) -> list[Path]:
    return [path for folder in _timelines(table) for path in sorted(folder.iterdir()) if path.name[0].isdigit()]


def _commits(table: Path) -> Iterator[tuple[Path, bytes]]:
    for path in _instant_files(table):
        data = path.read_bytes()
        if data.startswith(b"{"):
            yield path, data


def test_properties_parse_print_back_and_fit_their_checksum(table: Path) -> None:
    for folder in _timelines(table):
        data = (folder / "hoodie.properties").read_bytes()
        properties = parse_properties(data)
        assert "hoodie.table.checksum" in properties
        verify_checksum(properties)
        format_of(TableConfig(properties))
        without_comments = b"".join(line for line in data.splitlines(keepends=True) if not line.startswith(b"#"))
        assert render_properties(properties) == without_comments
        assert parse_properties(render_properties(properties, comments=("a comment",))) == properties


def test_every_instant_file_name_prints_back(table: Path) -> None:
    for folder in _timelines(table):
        table_format = format_of(TableConfig(parse_properties((folder / "hoodie.properties").read_bytes())))
        for path in folder.iterdir():
            instant = table_format.parse_file_name(path.name)
            assert (instant is not None) == path.name[0].isdigit()
            assert instant is None or table_format.file_name(instant) == path.name


def test_every_commit_prints_back(table: Path) -> None:
    by_hudi_0_15 = "partition_extractor_class" not in (table / ".hoodie/hoodie.properties").read_text()
    for path, data in _commits(table):
        metadata = decode_commit_metadata(data)
        printed = render_commit_metadata(metadata)
        assert json.loads(printed) == json.loads(data), path.name
        assert decode_commit_metadata(printed) == decode_commit_metadata(encode_commit_metadata(metadata)) == metadata
        assert printed == data or not by_hudi_0_15, path.name


def test_every_plan_and_outcome_prints_back(table: Path) -> None:
    for path in _instant_files(table):
        data = path.read_bytes()
        if not data.startswith(b"Obj\x01"):
            continue
        container = fastavro.reader(io.BytesIO(data))
        name = json.loads(container.metadata["avro.schema"])["name"]
        cls: Any = getattr(plans, name, None) or getattr(savepoint, name)
        plan = decode_plan(cls, data)
        printed = encode_plan(plan)
        assert decode_plan(cls, printed) == plan
        assert _holds(next(fastavro.reader(io.BytesIO(printed))), next(container)), path.name


def _holds(printed: Any, original: Any) -> bool:
    """Whether `printed` has all of `original`; it may have members that an older writer did not know."""
    if isinstance(original, dict):
        return all(key in printed and _holds(printed[key], value) for key, value in original.items())
    if isinstance(original, list):
        return len(printed) == len(original) and all(map(_holds, printed, original))
    return bool(printed == original)


def test_every_data_file_name_prints_back(table: Path) -> None:
    for path in _files(table):
        inside = path.relative_to(table).parts
        if ".hoodie" in inside[:-1] and (inside[:2] != (".hoodie", "metadata") or ".hoodie" in inside[2:]):
            continue
        if path.name == PARTITION_METAFILE:
            commit_time, depth = parse_partition_metafile(path.read_bytes())
            assert depth == len(inside) - 1 - (2 if inside[0] == ".hoodie" else 0)
            assert parse_partition_metafile(render_partition_metafile(commit_time, depth)) == (commit_time, depth)
        elif path.name.startswith("."):
            assert is_log_file_name(path.name), path.name
            assert parse_log_file("p", path.name, 7).name == path.name
        else:
            assert is_base_file_name(path.name), path.name
            assert parse_base_file("p", path.name, 7).name == path.name


def test_every_marker_prints_back(table: Path) -> None:
    for path in _files(table / ".hoodie" / ".temp"):
        relative = path.relative_to(table).as_posix()
        instant_time = relative.split("/")[2]
        data_file, kind = parse_marker_path(instant_time, relative)
        assert marker_path(instant_time, data_file, kind) == relative
        name = data_file.rsplit("/", 1)[-1]
        assert is_base_file_name(name) or is_log_file_name(name)


def test_every_bloom_filter_is_built_again_bit_for_bit(table: Path) -> None:
    for path in table.rglob("*.parquet"):
        footer = pq.read_metadata(path).metadata or {}
        text = footer.get(b"org.apache.hudi.bloomfilter", b"").decode()
        if not text:
            continue
        stored = BloomFilter.from_base64(text, footer[b"hoodie_bloom_filter_type_code"].decode())
        assert stored.to_base64() == text
        keys = pq.read_table(path, columns=["_hoodie_record_key"]).column(0)
        # The footer does not say the rate; 30 hash functions are Hudi's default of 1e-9, 20 the fixtures' 1e-6.
        fpp = {30: 1e-9, 20: 1e-6}[stored.nb_hash]
        built = build_bloom_filter(keys, kind=stored.kind, entries=stored.keys_per_row, fpp=fpp, max_entries=100_000)
        assert built.to_base64() == text, path.name
        assert stored.might_contain(keys).all()


def test_every_table_schema_goes_to_arrow_and_back(table: Path) -> None:
    for schema_json in _schemas(table):
        record = json.loads(schema_json)
        schema = avro_to_arrow(schema_json, drop_meta=True)
        printed = arrow_to_avro(schema, record["name"], record["namespace"])
        assert avro_to_arrow(printed).equals(schema, check_metadata=True)
        assert avro_to_arrow(with_meta_columns(schema_json)).names[5:] == schema.names
        # `create.schema` has its unions the other way round, which we never write.
        if '"null"]' not in schema_json:
            assert json.loads(printed) == json.loads(without_meta_columns(schema_json))


def _schemas(table: Path) -> set[str]:
    """Of the commits and the properties; the metadata table's own schema has unions that no user's table has."""
    properties = parse_properties((table / ".hoodie/hoodie.properties").read_bytes())
    found = {properties.get("hoodie.table.create.schema")}
    for path, data in _commits(table):
        if path.parent == table / ".hoodie":
            found.add(decode_commit_metadata(data).schema_json)
    return {text for text in found if text}
