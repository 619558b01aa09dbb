"""Commits of version 9 that complete in another order than they were requested, as Hudi reads and continues them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.commit.transaction import Transaction
from tests.interop.client import HudiJudge

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
OF_HUDI = {
    "hoodie.table.name": "t",
    "hoodie.metadata.enable": "true",
    "hoodie.index.type": "SIMPLE",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.embed.timeline.server": "true",
}
PROPERTIES = {
    "hoodie.index.type": "SIMPLE",
    "hoodie.write.table.version": "9",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
_SECONDS = 60


def rows(ids: str, part: str, ts: int) -> pa.Table:
    names = ids.split()
    return pa.table({"id": names, "part": [part] * len(names), "ts": [ts] * len(names), "n": [ts] * len(names)}, schema=SCHEMA)


@pytest.mark.parametrize("judged", [(9, "1.2.0")], ids=["9"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_and_continues_them(
    judged: tuple[int, HudiJudge], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, judge = judged
    made = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["part"], ordering_fields=["ts"], table_type=kind, properties=PROPERTIES
    )
    made.bulk_insert(pa.concat_tables([rows("a b", "x", 1), rows("c d", "y", 1)]))
    written, may_commit, original = threading.Event(), threading.Event(), Transaction.complete_beside

    def complete(self: Transaction, *given: Any, **named: Any) -> None:
        if threading.current_thread() is slow:
            written.set()
            assert may_commit.wait(_SECONDS)
        original(self, *given, **named)

    slow = threading.Thread(target=lambda: HoodieTable.open(made.path).upsert(rows("a new", "x", 5)))
    monkeypatch.setattr(Transaction, "complete_beside", complete)
    slow.start()
    assert written.wait(_SECONDS)
    HoodieTable.open(made.path).upsert(rows("c", "y", 6))
    HoodieTable.open(made.path).upsert(rows("d", "y", 7))
    may_commit.set()
    slow.join(_SECONDS)

    def stored() -> dict[str, int]:
        readings = [HoodieTable.open(made.path).to_arrow()]
        readings += [judge.read(made.path, options={"hoodie.metadata.enable": on}) for on in ("true", "false")]
        found = [{row["id"]: row["n"] for row in one.to_pylist()} for one in readings]
        assert found[0] == found[1] == found[2]
        return found[0]

    table = HoodieTable.open(made.path)
    writes = list(table.timeline.completed().writes())
    assert [one.requested_time for one in writes] != sorted(one.requested_time for one in writes)
    assert stored() == {"a": 5, "new": 5, "b": 1, "c": 6, "d": 7}
    if kind == "mor":
        table.compact()
    judge.write(made.path, rows("a e", "x", 9), {**OF_HUDI, "hoodie.datasource.write.table.type": str(made.config.table_type.value)})
    after = stored()
    assert (after["a"], after["e"], after["new"], after["d"]) == (9, 9, 5, 7)
    assert judge.judge_metadata(made.path)["differences"] == []
