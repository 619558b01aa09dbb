"""`metadata check` compares secondary and expression indexes with rows; one wrong record is found."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import MetadataFindingKind, check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("name", pa.string()), ("v", pa.int64())])
_OTHER_KEYS = {MetadataFindingKind.KEY_NOT_INDEXED, MetadataFindingKind.INDEXED_KEY_IS_GONE}


def rows(*ids: int) -> pa.Table:
    columns = ([f"k{one}" for one in ids], [f"p{one % 2}" for one in ids], [f"Name{one}" for one in ids], list(ids))
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), SCHEMA)


def made(folder: Path, table_type: str = "cow") -> HoodieTable:
    """A table with all kinds of indexes, each followed by a write."""
    spec = TableSpec("t", SCHEMA, ["id"], partition_by=["part"], table_type=table_type, version=TableVersion.NINE)
    create_table(LocalStorage(str(folder)), spec)
    table = HoodieTable.open(str(folder), options={"hoodie.parquet.small.file.limit": "0"})
    table.insert(rows(1, 2, 3))
    table.create_index("by_v", columns=["v"])
    table.create_index("low", columns=["name"], expression="lower")
    if table_type == "cow":
        table.create_index("ids", columns=["id"], type="bloom_filters", expression="upper")
    table.insert(rows(4, 5))
    return table


def checked(folder: Path) -> set[tuple[str, str]]:
    report = check_metadata_table(TableState.load(LocalStorage(str(folder))))
    return {(str(one.kind), one.partition) for one in report.findings}


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_was_kept_up_has_no_findings(tmp_path: Path, table_type: str) -> None:
    table = made(tmp_path / "t", table_type)
    table.upsert(rows(1, 4, 6))
    table.delete(pa.table({"id": ["k2"], "part": ["p0"]}))
    report = check_metadata_table(TableState.load(table.storage))
    assert (report.findings, report.skipped) == ((), ())
    assert report.keys == 2 * 5
    assert report.statistics > 0
    assert (report.filters > 0) == (table_type == "cow")


@pytest.mark.parametrize(
    ("partition", "told", "expected"),
    [
        ("secondary_index_by_v", {"sourceFields": ["name"]}, _OTHER_KEYS),
        ("expr_index_low", {"indexFunction": "upper"}, {MetadataFindingKind.WRONG_STATISTICS}),
        ("expr_index_ids", {"indexFunction": "lower"}, {MetadataFindingKind.WRONG_BLOOM_FILTER}),
    ],
)
def test_records_of_something_else_are_found(
    tmp_path: Path, partition: str, told: dict[str, object], expected: set[MetadataFindingKind]
) -> None:
    made(tmp_path)
    assert checked(tmp_path) == set()
    path = tmp_path / ".hoodie/.index_defs/index.json"
    stored = json.loads(path.read_text())
    stored["indexDefinitions"][partition] |= told
    path.write_text(json.dumps(stored))
    assert checked(tmp_path) == {(str(kind), partition) for kind in expected}
