"""Tables of Hudi with buckets that are split, merged, or of another number in each partition: read, and never written into a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.table import HoodieTable
from tests.support.untouched import make_table, refused

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
METADATA = {
    "consistent hashing buckets": "consistent_hashing_metadata/region=a/00000000000000.hashing_meta",
    "a number of buckets for each partition": "partition_bucket_index_meta/configs/00000000000000.hashing_config",
}


def batch(**rows: int) -> pa.Table:
    return pa.table([list(rows), list(rows.values())], schema=SCHEMA)


WRITES: dict[str, Callable[[HoodieTable], Any]] = {
    "upsert": lambda table: table.upsert(batch(a=2)),
    "insert": lambda table: table.insert(batch(b=2)),
    "bulk_insert": lambda table: table.bulk_insert(batch(b=2)),
    "delete": lambda table: table.delete(pa.table({"id": ["a"]})),
    "insert_overwrite": lambda table: table.insert_overwrite(batch(b=2)),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(batch(b=2)),
}


@pytest.mark.parametrize("kind", METADATA)
@pytest.mark.parametrize("write", WRITES)
def test_table_that_shows_such_buckets_in_its_files_is_read_and_not_written(write: str, kind: str, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA, table_type="mor")
    table.insert(batch(a=1))
    path = tmp_path / "t" / ".hoodie" / ".bucket_index" / METADATA[kind]
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    opened = HoodieTable.open(table.path)
    error = refused(tmp_path, UnsupportedTableError, lambda: WRITES[write](opened), kind)
    assert path.name in str(error)
    assert "copy its rows into a new table" in str(error)
    assert opened.to_arrow().to_pylist() == [{"id": "a", "v": 1}]


def test_engine_asked_for_by_a_write_or_a_new_table_is_refused(tmp_path: Path) -> None:
    engine = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
    refused(tmp_path, UnsupportedTableError, lambda: make_table(tmp_path / "new", SCHEMA, properties=engine), "CONSISTENT_HASHING")
    table = make_table(tmp_path / "t", SCHEMA, properties={**engine, "hoodie.index.bucket.engine": "simple"})
    table.insert(batch(a=1))
    refused(tmp_path, UnsupportedTableError, lambda: table.upsert(batch(a=2), options=engine), "CONSISTENT_HASHING")
    table.upsert(batch(a=3), options={"hoodie.index.bucket.engine": "SIMPLE"})
    assert table.to_arrow().to_pylist() == [{"id": "a", "v": 3}]
