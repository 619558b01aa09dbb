"""Properties that another program wrote anew, without their seal: what contradicts the stored rows is refused, and `verify` tells it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine.errors import ContradictoryPropertiesError, UnsupportedTableError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify import FindingKind, verify
from lakehouse_engine.write.create import TableSpec, create_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
OPTIONS = {"hoodie.clean.commits.retained": 1, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.compact.inline": False}


def rows(keys: range, value: int) -> pa.Table:
    return pa.table({"id": list(keys), "p": ["a"] * len(keys), "v": [value] * len(keys)}, schema=SCHEMA)


def made(folder: Path, table_type: str) -> HoodieTable:
    spec = TableSpec("t", SCHEMA, ["id"], [], ["p"], table_type=table_type)
    create_table(LocalStorage(str(folder / "t")), spec)
    table = HoodieTable.open(str(folder / "t"), options=OPTIONS)
    table.upsert(rows(range(4), 0))
    table.upsert(rows(range(2), 1))
    return table


def rewritten(table: HoodieTable, key: str, value: str) -> HoodieTable:
    """As `java.util.Properties.store` writes them: no comment of ours stays."""
    path = Path(table.path, ".hoodie/hoodie.properties")
    properties = dict(line.split("=", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
    path.write_text("#Updated at now\n#Sat\n" + "".join(f"{name}={text}\n" for name, text in {**properties, key: value}.items()))
    return HoodieTable.open(table.path, options=OPTIONS)


@pytest.mark.parametrize("archived", [False, True])
def test_a_merge_on_read_table_that_is_called_copy_on_write_is_neither_read_nor_written(tmp_path: Path, archived: bool) -> None:
    table = made(tmp_path, "mor")
    first = table.timeline.completed().writes().instants[0].requested_time
    for value in range(8 if archived else 1):
        table.bulk_insert(pa.table({"id": [100 + value], "p": ["b"], "v": [value]}, schema=SCHEMA))
    if archived:
        # Only the checkpoint of live files and the listing tell of the logs then.
        assert not table.timeline.contains(first)
    expected = sorted(table.to_arrow().to_pylist(), key=str)
    wrong = rewritten(table, "hoodie.table.type", "COPY_ON_WRITE")
    last = wrong.timeline.completed().writes().last().requested_time  # type: ignore[union-attr]
    for query in ({}, {"as_of": last}, {"query": "incremental", "begin": "earliest"}):
        with pytest.raises(ContradictoryPropertiesError, match="COPY_ON_WRITE"):
            wrong.to_arrow(**query)
    for write in (wrong.upsert, wrong.insert):
        with pytest.raises(ContradictoryPropertiesError, match="MERGE_ON_READ"):
            write(rows(range(1, 6), 7))
    assert [finding.kind for finding in verify(wrong.state).findings] == [FindingKind.CORRUPT_PROPERTIES]
    assert not wrong.repair().repaired
    right = rewritten(table, "hoodie.table.type", "MERGE_ON_READ")
    assert sorted(right.to_arrow().to_pylist(), key=str) == expected
    assert verify(right.state).findings == ()


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_what_a_write_refuses_of_the_properties_is_a_finding(tmp_path: Path, table_type: str) -> None:
    changes = {
        "hoodie.table.recordkey.fields": "v",
        "hoodie.table.partition.fields": "v",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.table.base.file.format": "ORC",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    table = made(tmp_path, table_type)
    assert verify(table.state).findings == ()
    whole = Path(table.path, ".hoodie/hoodie.properties").read_bytes()
    for key, value in changes.items():
        wrong = rewritten(table, key, value)
        with pytest.raises(UnsupportedTableError):
            wrong.upsert(rows(range(1), 3))
        assert [finding.kind for finding in verify(wrong.state).findings] == [FindingKind.CORRUPT_PROPERTIES], key
        Path(table.path, ".hoodie/hoodie.properties").write_bytes(whole)


def test_a_copy_on_write_table_that_is_called_merge_on_read_is_read_and_written_on(tmp_path: Path) -> None:
    table = rewritten(made(tmp_path, "cow"), "hoodie.table.type", "MERGE_ON_READ")
    table.upsert(rows(range(1, 5), 7))
    assert sorted(row["v"] for row in table.to_arrow().to_pylist()) == [1, 7, 7, 7, 7]
    assert verify(table.state).findings == ()
