"""Metadata tables that we build: by Hudi's own classes they say what the table says, Hudi's reads with them find the same rows as without,
and Hudi goes on with them by the record index.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.metadata_table.building import beside
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.verify.metadata_table import check_metadata_table
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.create import TableSpec, create_table
from tests.interop.client import HudiJudge, Query, copy_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("ts", pa.int64()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("big", pa.decimal128(38, 10)),
        ("s", pa.struct([("a", pa.int32())])),
        ("arr", pa.list_(pa.int32())),
    ]
)
NULLS = {name: None for name in SCHEMA.names if name not in ("id", "part", "ts", "text")}
ENABLED = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}
CONDITIONS = [
    "id in ('k00001', 'k00400', 'nope')",
    "n between 7 and 9",
    "x > 1000",
    "x is null",
    "isnan(x)",
    "f < 3",
    "ok = false",
    "text > 'y'",
    "day = date'2024-01-08'",
    "at > timestamp'2024-01-02 00:00:00'",
    "price = 1.75",
    "big > 30",
    "part = 'p1' and x > 1000",
]


def row(number: int, **changed: Any) -> dict[str, Any]:
    made = {
        "id": f"k{number:05d}",
        "part": f"p{number % 3}",
        "ts": number,
        "n": number,
        "x": float(number),
        "f": float(number),
        "ok": number % 2 == 0,
        "raw": b"%d" % number,
        "text": f"t{number}",
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=number),
        "at": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=number),
        "price": Decimal(number) / 4,
        "big": Decimal(number) / 8,
        "s": {"a": number},
        "arr": [number],
    }
    return {**made, **changed}


def rows(*made: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(made), schema=SCHEMA)


def table_of_ours(folder: Path, version: int, kind: str) -> HoodieTable:
    """Files of all sorts: with zeros, nulls, long texts and NaN; replaced ones, and logs of updates and of deletions."""
    spec = TableSpec("t", SCHEMA, ["id"], ordering_fields=["ts"], partition_by=["part"], table_type=kind, version=TableVersion(version))
    create_table(LocalStorage(str(folder)), spec)
    table = HoodieTable.open(str(folder), options={"hoodie.parquet.small.file.limit": 0})
    table.insert(rows(*(row(number) for number in range(30))))
    table.insert(rows(*(row(number, x=math.nan, part="p1") for number in range(100, 103))))
    table.insert(rows(*(row(number, text="z" * 5000, **NULLS) for number in range(200, 203))))
    table.insert(rows(*(row(number, x=0.0 if number % 2 else -0.0) for number in range(300, 306))))
    table.upsert(rows(row(1, ts=1000, n=-5), row(2, ts=1000, x=2000.0), row(400)))
    table.delete(pa.table({"id": ["k00005"], "part": ["p2"]}))
    return table


def partitions(version: int) -> list[str]:
    return ["column_stats", "bloom_filters", "record_index", *(["partition_stats"] if version > 6 else [])]


def written_as(table: HoodieTable) -> dict[str, str]:
    """Options of a write by Hudi that keeps the metadata table."""
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": str(table.config.table_type.value),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        # Without it, Hudi 1.2.0 cannot write statistics of partitions.
        "hoodie.embed.timeline.server": "true",
        **ENABLED,
    }


def agree(judge: HudiJudge, folder: Path, copies: Path) -> None:
    """By Hudi's classes and procedure, and by our check."""
    found = judge.judge_metadata(folder)
    assert found["differences"] == []
    assert all(found["counts"][name] for name in found["partitions"])
    listed = judge.call("validate_metadata_table_files", table=judge.register(copy_table(folder, copies)))
    assert listed is not None
    assert listed.num_rows == 0
    assert check_metadata_table(TableState.load(LocalStorage(str(folder)))).findings == ()


def same_rows_by_both(judge: HudiJudge, folder: Path, conditions: Sequence[str] = CONDITIONS) -> None:
    ways = [{**ENABLED, "hoodie.enable.data.skipping": "true"}, {"hoodie.metadata.enable": "false"}]
    asked = [(folder, Query(options=options, where=condition)) for condition in conditions for options in ways]
    keys = [sorted(found.column("id").to_pylist()) for found in judge.read_many(asked)]
    assert dict(zip(conditions, keys[::2], strict=True)) == dict(zip(conditions, keys[1::2], strict=True))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_goes_on_with_and_agrees_with_what_we_build(judged: tuple[int, HudiJudge], kind: str, tmp_path: Path) -> None:
    version, judge = judged
    folder = tmp_path / "t"
    table = table_of_ours(folder, version, kind)
    table.rebuild_metadata(partitions(version))
    agree(judge, folder, tmp_path / "first")
    same_rows_by_both(judge, folder)
    options = {**written_as(table), "hoodie.index.type": "RECORD_INDEX"}
    changed = [row(7, ts=5000, n=-7, part="p1"), row(8, ts=5000, n=-8), row(401, ts=5000, n=-9), row(500, ts=1, n=-10)]
    judge.write(folder, rows(*changed), {**options, "hoodie.datasource.write.operation": "upsert"})
    judge.write(folder, rows(row(9, ts=6000)), {**options, "hoodie.datasource.write.operation": "delete"})
    found = judge.read(folder, options=ENABLED).to_pylist()
    assert len(found) == len({one["id"] for one in found})
    assert {one["id"]: one["n"] for one in found if one["ts"] >= 5000} == {"k00007": -7, "k00008": -8, "k00401": -9}
    assert not [one for one in found if one["id"] == "k00009"]
    agree(judge, folder, tmp_path / "second")
    same_rows_by_both(judge, folder, ["n < 0", "id = 'k00500'"])


def test_hudi_and_we_write_while_an_index_is_built(
    judged: tuple[int, HudiJudge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's writer leaves the build, and logs to what is built; afterwards it finds keys by the index, beside a plan."""
    version, judge = judged
    folder = tmp_path / "t"
    table = table_of_ours(folder, version, "mor")
    table.rebuild_metadata(["files"])
    options = {**written_as(table), "hoodie.datasource.write.operation": "upsert"}
    with_keys = {key: str(key in ("hoodie.metadata.enable", "hoodie.metadata.record.index.enable")).lower() for key in ENABLED}
    beside_it = {**options, **with_keys, "hoodie.metadata.index.async": "true", "hoodie.index.type": "GLOBAL_SIMPLE"}
    write = beside.write

    def written(build: beside.Build) -> HoodieCommitMetadata:
        table.upsert(rows(row(10, ts=5000, n=-1), row(600)))
        if version > 6:  # 0.15 refuses a partition whose delta commit is pending
            judge.write(folder, rows(row(11, ts=5000, n=-2), row(601)), beside_it)
        return write(build)

    monkeypatch.setattr(beside, "write", written)
    assert table.create_index("record_index").built == ("record_index",)
    monkeypatch.undo()
    agree(judge, folder, tmp_path / "first")
    planned = table.create_index("bloom_filters", op="schedule")
    changed = [row(600, ts=7000, n=-3), row(601, ts=7000, n=-4), row(602, ts=1, n=-5)]
    judge.write(folder, rows(*changed), {**options, **with_keys, "hoodie.index.type": "RECORD_INDEX"})
    found = judge.read(folder, options=ENABLED).to_pylist()
    assert len(found) == len({one["id"] for one in found})
    beside_both = [-2, -1] if version > 6 else [-1]
    changed_ids = ("k00010", "k00011", "k00600", "k00601", "k00602")
    assert sorted(one["n"] for one in found if one["id"] in changed_ids and one["n"] < 0) == [-5, -4, -3, *beside_both]
    assert table.create_index("bloom_filters").instant == planned.instant
    agree(judge, folder, tmp_path / "second")
