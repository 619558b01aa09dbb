"""Our writes by the record index, and Hudi's, one after the other: each finds the other's keys where the index says."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from tests.interop.client import HudiJudge, bundle_jar, why_unavailable

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
BY_INDEX = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
OF_HUDI = {
    **BY_INDEX,
    "hoodie.table.name": "t",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.embed.timeline.server": "true",
}


@pytest.fixture(scope="module", params=[(6, "0.15.0"), (9, "1.2.0")], ids=["6", "9"])
def judged(request: pytest.FixtureRequest) -> Iterator[tuple[int, HudiJudge]]:
    version, hudi = request.param
    reason = why_unavailable(hudi)
    if reason is not None:
        pytest.skip(reason)
    # Metadata tables are read by classes that have to come from one class loader.
    conf = {"spark.driver.extraClassPath": str(bundle_jar(hudi))}
    with HudiJudge(hudi, keep_version=False, conf=conf) as judge:
        yield version, judge


def rows(ids: str, part: str, ts: int) -> pa.Table:
    names = ids.split()
    return pa.table({"id": names, "part": [part] * len(names), "ts": [ts] * len(names), "n": [ts] * len(names)}, schema=SCHEMA)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_both_write_by_it(judged: tuple[int, HudiJudge], kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    version, judge = judged
    properties = {"hoodie.index.type": "RECORD_INDEX", "hoodie.table.version": str(version)}
    made = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["part"], ordering_fields=["ts"], table_type=kind, properties=properties
    )
    options = {**OF_HUDI, "hoodie.datasource.write.table.type": str(made.config.table_type.value)}

    def by_hudi(given: pa.Table, operation: str = "upsert") -> None:
        judge.write(made.path, given, {**options, "hoodie.datasource.write.operation": operation})

    def stored() -> dict[str, tuple[str, int]]:
        readings = [HoodieTable.open(made.path).to_arrow()]
        readings += [judge.read(made.path, options={"hoodie.metadata.enable": on}) for on in ("true", "false")]
        found = [sorted((row["id"], row["part"], row["n"]) for row in one.to_pylist()) for one in readings]
        assert found[0] == found[1] == found[2]
        assert len({key for key, _, _ in found[0]}) == len(found[0]), "a key is stored twice"
        return {key: (part, n) for key, part, n in found[0]}

    table = HoodieTable.open(made.path)
    with caplog.at_level(logging.WARNING):
        table.upsert(rows("a b c", "x", 1))
        table.upsert(rows("b d", "y", 2))
        by_hudi(rows("a d e", "x", 3))
        assert stored() == {"a": ("x", 3), "b": ("y", 2), "c": ("x", 1), "d": ("x", 3), "e": ("x", 3)}
        table.upsert(rows("d e f", "y", 4))
        table.delete(rows("a", "x", 5))
    assert [record.message for record in caplog.records if "is not asked" in record.message] == []
    by_hudi(rows("a f", "x", 6))
    by_hudi(rows("c", "x", 7), "delete")
    table.upsert(rows("a b c d e f", "z", 8))
    assert stored() == dict.fromkeys("abcdef", ("z", 8))
    assert judge.judge_metadata(made.path)["differences"] == []
