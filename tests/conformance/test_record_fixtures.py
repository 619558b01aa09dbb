"""Record keys and partition paths made of the user columns equal those that Hudi wrote beside them."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.format.properties import parse_properties
from lakehouse_engine.model.keys import PARTITION_PATH, RECORD_KEY
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import KeyGenerator, generated_keys, key_generator_of
from lakehouse_engine.record.keys.partition_path import decode_partition_path
from lakehouse_engine.record.text import java_text
from tests.support.fixtures import rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture

TYPE = "hoodie.keygen.timebased.timestamp.type"
FORMAT = "hoodie.keygen.timebased.output.dateformat"
NOT_STORED = {
    "cow_keygen_timestamp_unix": {TYPE: "UNIX_TIMESTAMP"},
    "cow_keygen_timestamp_millis": {TYPE: "EPOCHMILLISECONDS"},
    "cow_keygen_custom": {
        "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,at:TIMESTAMP",
        TYPE: "UNIX_TIMESTAMP",
        FORMAT: "yyyyMMdd",
    },
}
"""What Hudi 0.15 leaves out of the properties."""

# Hudi's bootstrap takes paths from the source's folders, not from the column.
WITHOUT_KEYS = ("bootstrap", "no_meta_fields", "no_metafields", "empty")
FIXTURES = [name for name in spark_fixtures(table_type="cow") + rs_fixtures("cow") if not any(word in name for word in WITHOUT_KEYS)]

pytestmark = pytest.mark.skipif(not FIXTURES, reason="the fixture tables are not here (LAKEHOUSE_FIXTURES)")


@pytest.fixture(params=FIXTURES)
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, TableConfig]:
    name: str = request.param
    folder = unpack_spark_fixture(name, tmp_path) if "/" in name else unpack_rs_fixture(name, tmp_path)
    return name.split("/")[-1], folder, TableConfig(parse_properties((folder / ".hoodie" / "hoodie.properties").read_bytes()))


def base_files(folder: Path) -> list[pa.Table]:
    paths = [path for path in sorted(folder.rglob("*.parquet")) if ".hoodie" not in path.relative_to(folder).parts]
    return [table for path in paths if (table := pq.ParquetFile(path).read()).num_rows]


def test_keys_and_paths_equal_hudis(fixture: tuple[str, Path, TableConfig]) -> None:
    name, folder, config = fixture
    generator = key_generator_of(config, NOT_STORED.get(name))
    tables = base_files(folder)
    assert tables
    for table in tables:
        assert generator.partition_paths(table).to_pylist() == table.column(PARTITION_PATH).to_pylist()
        if generator.record_key_fields:
            assert generator.record_keys(table).to_pylist() == table.column(RECORD_KEY).to_pylist()
        else:
            assert all(re.fullmatch(r"\d{17}_\d+_\d+", key) for key in table.column(RECORD_KEY).to_pylist())


def test_paths_decode_to_the_values(fixture: tuple[str, Path, TableConfig]) -> None:
    name, folder, config = fixture
    if "timestamp" in name or "custom" in name:
        pytest.skip("the path holds a formatted date, not the value")
    for table in base_files(folder):
        for index, path in enumerate(table.column(PARTITION_PATH).to_pylist()):
            values = decode_partition_path(path, config.partition_fields, config.hive_style_partitioning, config.url_encode_partitioning)
            stored = {field: java_text(table.column(field))[index].as_py() or None for field in config.partition_fields}
            assert values == stored


def test_generated_keys_have_hudis_form() -> None:
    assert generated_keys("20240101000000000", 3, 2).to_pylist() == ["20240101000000000_3_0", "20240101000000000_3_1"]


def test_custom_kinds_that_are_not_stored_are_refused(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v6-0.15.0/cow_keygen_custom", tmp_path)
    config = TableConfig(parse_properties((folder / ".hoodie" / "hoodie.properties").read_bytes()))
    with pytest.raises(UnsupportedTableError, match="region:SIMPLE"):
        key_generator_of(config)


def test_generators_survive_pickling(fixture: tuple[str, Path, TableConfig]) -> None:
    name, _, config = fixture
    generator: KeyGenerator = key_generator_of(config, NOT_STORED.get(name))
    assert pickle.loads(pickle.dumps(generator)) == generator
