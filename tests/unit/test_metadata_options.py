"""What options ask of a table's metadata table, and that a table keeps them for its later writers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.options import STORED_PREFIX, ServiceOptions
from lakehouse_engine.options.metadata_table import MetadataTableOptions
from lakehouse_engine.write.alter import set_properties

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
ENABLE, STATS, BLOOM = "hoodie.metadata.enable", "hoodie.metadata.index.column.stats.enable", "hoodie.metadata.index.bloom.filter.enable"
RECORDS, OLDER = "hoodie.metadata.global.record.level.index.enable", "hoodie.metadata.record.index.enable"
PARTITION_STATS = "hoodie.metadata.index.partition.stats.enable"


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({}, ()),
        ({ENABLE: "auto"}, ()),
        ({ENABLE: True}, ("files",)),
        ({STATS: "true"}, ("files", "column_stats")),
        ({ENABLE: "true", BLOOM: True, STATS: False}, ("files", "bloom_filters")),
        ({RECORDS: "true"}, ("files", "record_index")),
        ({OLDER: "true"}, ("files", "record_index")),
        ({"hoodie.index.type": "record_level"}, ("files", "record_index")),
        ({OLDER: "true", STATS: "true", PARTITION_STATS: "true"}, ("files", "column_stats", "record_index", "partition_stats")),
        ({"hoodie.index.type": "RECORD_LEVEL_INDEX"}, ()),
        ({STATS: "false", BLOOM: "false", RECORDS: "false", PARTITION_STATS: "false"}, ()),
    ],
)
def test_partitions_that_are_asked_for(given: dict[str, Any], partitions: tuple[str, ...]) -> None:
    assert MetadataTableOptions.read(given) == MetadataTableOptions(partitions, False)


def test_false_asks_for_none() -> None:
    assert MetadataTableOptions.read({ENABLE: "false", RECORDS: "false"}) == MetadataTableOptions((), True)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({ENABLE: "false", STATS: "true"}, f"{ENABLE}=false contradicts {STATS}"),
        ({ENABLE: "false", "hoodie.index.type": "RECORD_INDEX"}, f"{ENABLE}=false contradicts hoodie.index.type"),
        ({"hoodie.index.type": "RECORD_INDEX", OLDER: "false"}, f"contradicts {RECORDS}=false"),
        ({PARTITION_STATS: "true"}, f"needs {STATS}=true"),
        ({ENABLE: "yes"}, f"{ENABLE}='yes' does not parse: expected one of AUTO, TRUE, FALSE"),
    ],
)
def test_contradictions_are_refused_before_a_table_is_made(given: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=why):
        ServiceOptions.read(given)
    with pytest.raises(OptionError, match=why):
        Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], properties=given)
    assert not (tmp_path / "s" / "t").exists()


def test_a_table_without_record_key_does_not_get_a_record_index_later(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA)
    with pytest.raises(OptionError, match="a record index needs a table with record key fields"):
        set_properties(table.storage, {"hoodie.index.type": "RECORD_INDEX"}, lock_timeout_ms=1000)
    config = set_properties(table.storage, {ENABLE: "true"}, lock_timeout_ms=1000)
    assert config.properties[STORED_PREFIX + ENABLE] == "true"


def test_a_table_is_not_made_with_a_record_index_of_each_partition(tmp_path: Path) -> None:
    given = {"hoodie.index.type": "RECORD_LEVEL_INDEX"}
    with pytest.raises(UnavailableError, match="a record index for each partition is kept where Hudi made one"):
        Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], partition_by=["v"], properties=given)
    assert not (tmp_path / "s" / "t").exists()


def test_a_table_keeps_them_for_its_later_writers(tmp_path: Path) -> None:
    given = {ENABLE: "true", OLDER: "true", "hoodie.index.type": "RECORD_INDEX"}
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], properties=given)
    assert {key: table.config.properties[STORED_PREFIX + key] for key in given} == given
    assert [key for key in table.config.properties if key.startswith("hoodie.metadata") or key == "hoodie.index.type"] == []
