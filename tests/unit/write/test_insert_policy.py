"""`hoodie.datasource.insert.dup.policy`: what an insert does with rows whose key is stored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import DuplicateKeyError, OptionError

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.string())])
POLICY, DROPS = "hoodie.datasource.insert.dup.policy", "hoodie.datasource.write.insert.drop.duplicates"
INDEXES: dict[str, dict[str, str]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "global": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}


def rows(*given: tuple[int, str, str]) -> pa.Table:
    return pa.table([list(column) for column in zip(*given, strict=True)], schema=SCHEMA)


def content(table: HoodieTable) -> list[tuple[int, str, str]]:
    return sorted((one["id"], one["p"], one["v"]) for one in table.to_arrow().to_pylist())


@pytest.mark.parametrize("route", [{}, {"lakehouse.write.broadcast.max.bytes": "0"}], ids=["small", "large"])
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_rows_whose_key_is_stored_are_left_out_or_refuse_the_insert(tmp_path: Path, kind: str, index: str, route: dict[str, str]) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=kind, properties=INDEXES[index]
    )
    table.upsert(rows((1, "x", "a"), (2, "x", "b"), (3, "y", "c"), (4, "y", "gone")))
    table.upsert(rows((3, "y", "C")))
    table.delete(rows((4, "y", "")).select(["id", "p"]))
    news, before = rows((1, "x", "new"), (3, "x", "new"), (4, "y", "back"), (9, "x", "new")), table.timeline
    with pytest.raises(DuplicateKeyError, match=r"key that is stored already, for example '1'.*dup\.policy is FAIL.*MERGE.*table=t"):
        table.insert(news, options={POLICY: "fail", **route})
    assert table.timeline == before
    result = table.insert(news, options={POLICY: "drop", **route})
    known = {1, 3} if index == "global" else {1}
    added = [row for row in [(3, "x", "new"), (4, "y", "back"), (9, "x", "new")] if row[0] not in known]
    # Rows that are logged in buckets count as updates.
    assert (result.inserts + result.updates, result.duplicates_dropped) == (len(added), len(known))
    stored = sorted([(1, "x", "a"), (2, "x", "b"), (3, "y", "C"), *added])
    assert content(table) == stored
    again = table.insert(news, options={DROPS: "true", **route})
    assert (again.instant, again.duplicates_dropped) == (None, 4)
    table.insert(rows((10, "x", "new")), options={POLICY: "fail", **route})
    assert content(table) == [*stored, (10, "x", "new")]
    assert table.insert(rows((11, "y", "new")), options={POLICY: "none", **route}).instant is not None


@pytest.mark.parametrize("route", [{}, {"lakehouse.write.broadcast.max.bytes": "0"}], ids=["small", "large"])
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_every_row_of_a_batch_whose_key_is_stored_is_left_out(tmp_path: Path, kind: str, index: str, route: dict[str, str]) -> None:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=["id"], partition_by=["p"], table_type=kind, properties=INDEXES[index]
    )
    table.upsert(rows((1, "x", "a")))
    again = rows((1, "x", "b"), (1, "x", "c"), (1, "x", "d"), (1, "y", "e"))
    with pytest.raises(DuplicateKeyError, match="stored already, for example '1'"):
        table.insert(again, options={POLICY: "fail", **route})
    table.insert(again, options={POLICY: "drop", **route})
    assert content(table) == [(1, "x", "a"), *([] if index == "global" else [(1, "y", "e")])]


def test_policy_of_a_table_counts_for_its_inserts_and_not_for_bulk_inserts(tmp_path: Path) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA, record_key=["id"], properties={POLICY: "drop"})
    table.insert(rows((1, "x", "a"), (1, "x", "b")))
    table.insert(rows((1, "x", "c")))
    assert [v for _, _, v in content(table)] == ["a", "b"]
    table.bulk_insert(rows((1, "x", "d")))
    assert table.to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [({POLICY: "upsert"}, "NONE, DROP, FAIL"), ({POLICY: "fail", DROPS: "true"}, "contradicts"), ({POLICY: "drop"}, "generated keys")],
)
def test_policies_that_cannot_be_kept_are_refused(tmp_path: Path, options: dict[str, str], said: str) -> None:
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=SCHEMA)
    with pytest.raises(OptionError, match=said):
        table.insert(rows((1, "x", "a")), options=options)
    assert not table.timeline.instants
