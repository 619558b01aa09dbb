"""Tables with soft deletes: a deleted row stays stored with its ordering value, and reads leave it out."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ConstraintError, DuplicateKeyError, OptionError, SchemaIncompatibleError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.options import LOCK_TIMEOUT_MS
from lakehouse_engine.write.alter import set_constraints, set_soft_deletes
from tests.support.readers import read_with_hudi_rs

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("_hoodie_is_deleted", pa.bool_())])
SOFT = {"lakehouse.deletes": "soft"}
DELETED_AT = "_lakehouse_deleted_at"
ROUTES = {"at once": {}, "in shares": {"lakehouse.write.broadcast.max.bytes": 0}}
KINDS = ("cow", "mor")
EVOLVE = "hoodie.datasource.write.reconcile.schema"
PAYLOAD, MODELS = "hoodie.datasource.write.payload.class", "org.apache.hudi.common.model."


def make(folder: Path, kind: str = "cow", **more: Any) -> HoodieTable:
    given = {"schema": SCHEMA, "record_key": ["id"], "ordering_fields": ["ts"], "partition_by": ["p"], "table_type": kind}
    properties = {**SOFT, **more.pop("properties", {})}
    return Lakehouse(str(folder)).create_table("s.t", **{**given, "properties": properties, **more})


def rows(*given: tuple[int, str | None, int]) -> pa.Table:
    """A row without a value is a deletion."""
    made = [{"id": id, "v": v, "ts": ts, "p": "x", "_hoodie_is_deleted": v is None} for id, v, ts in given]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def shown(table: HoodieTable, **query: Any) -> dict[int, tuple[str | None, int]]:
    found = table.to_arrow(**query)
    assert DELETED_AT not in found.column_names
    return {row["id"]: (row["v"], row["ts"]) for row in found.to_pylist()}


def gone(table: HoodieTable, **query: Any) -> dict[int, int]:
    """Ordering values of rows that are deleted."""
    found = table.to_arrow(deleted=True, **query)
    return {row["id"]: row["ts"] for row in found.filter(pc.field(DELETED_AT).is_valid()).to_pylist()}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_older_event_changes_nothing_and_a_newer_one_brings_the_row_back(tmp_path: Path, kind: str, index: str, route: str) -> None:
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table, options = make(tmp_path, kind, properties=properties), ROUTES[route]
    table.upsert(rows((1, "a", 10), (2, "b", 10)), options=options)
    table.upsert(rows((1, None, 20), (3, None, 20)), options=options)
    table.upsert(rows((1, "late", 15), (3, "late", 15)), options=options)
    assert shown(table) == {2: ("b", 10)}
    assert gone(table) == {1: 20, 3: 20}
    table.upsert(rows((1, None, 18), (2, None, 5)), options=options)
    assert (shown(table), gone(table)) == ({2: ("b", 10)}, {1: 20, 3: 20})
    table.upsert(rows((1, "back", 30)), merge_update_columns=["v"], options=options)
    table.upsert(rows((3, "back", 30)).drop_columns(["p"]).append_column("p", pa.array(["x"])), options=options)
    assert (shown(table), gone(table)) == ({1: ("back", 30), 2: ("b", 10), 3: ("back", 30)}, {})
    if kind == "mor":
        table.services.compact()
        assert shown(table) == {1: ("back", 30), 2: ("b", 10), 3: ("back", 30)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_leaves_deleted_rows_and_their_column_out_unless_it_asks(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path, kind)
    table.insert(rows((1, "a", 10), (2, "b", 10), (3, None, 10)))
    first = table.timeline.completed().writes().last().requested_time
    before = datetime.now(timezone.utc)
    table.upsert(rows((1, None, 20)))
    assert table.schema.names == SCHEMA.names
    assert shown(table, as_of=first) == {1: ("a", 10), 2: ("b", 10)}
    assert gone(table, as_of=first) == {3: 10}
    assert shown(table, query="incremental", begin=first) == {}
    assert gone(table, query="incremental", begin=first) == {1: 20}
    assert shown(table, filters=pc.field("ts") >= 10) == {2: ("b", 10)}
    assert set(shown(table, query="read_optimized")) == ({2} if kind == "cow" else {1, 2})
    [row] = table.to_arrow(["id", DELETED_AT], deleted=True, filters=pc.field("id") == 1).to_pylist()
    assert before <= row[DELETED_AT] <= datetime.now(timezone.utc)
    with pytest.raises(SchemaIncompatibleError, match="no column '_lakehouse_deleted_at'"):
        table.to_arrow([DELETED_AT])


@pytest.mark.parametrize("kind", KINDS)
def test_other_readers_find_ordinary_rows(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path, kind, partition_by=[])
    table.upsert(rows((1, "a", 10), (2, "b", 10)))
    table.upsert(rows((1, None, 20)))
    found = read_with_hudi_rs(tmp_path / "s" / "t")
    assert sorted((row["id"], row["ts"], row[DELETED_AT] is None) for row in found.to_pylist()) == [(1, 20, False), (2, 10, True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_builds_from_nothing_keep_deletions_as_upserts_do(tmp_path: Path, kind: str, operation: str) -> None:
    table = make(tmp_path, kind)
    getattr(table, operation)(rows((1, "a", 10), (9, None, 10)))
    assert (shown(table), gone(table)) == ({1: ("a", 10)}, {9: 10})
    table.upsert(rows((9, "late", 5)))
    assert shown(table) == {1: ("a", 10)}


def test_deletions_by_key_are_for_good(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(rows((1, "a", 10), (2, None, 10), (3, None, 10)))
    table.delete(pa.table({"id": [1, 2], "p": ["x", "x"]}))
    table.upsert(rows(), delete_keys=table.to_arrow(meta_columns=True, deleted=True, filters=pc.field(DELETED_AT).is_valid()))
    assert table.to_arrow(deleted=True).num_rows == 0
    table.upsert(rows((2, "anew", 1)))
    assert shown(table) == {2: ("anew", 1)}


def test_a_column_by_marker_deletes_softly_and_a_time_that_is_given_stays(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("Op", pa.string()), ("ts", pa.int64())])
    marker = {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"}
    table = make(tmp_path, "mor", schema=schema, partition_by=[], properties=marker)
    table.upsert(pa.table({"id": [1, 2], "Op": ["D", "I"], "ts": [5, 5]}))
    at = datetime(2026, 1, 2, tzinfo=timezone.utc)
    table.upsert(pa.table({"id": [2], "Op": ["U"], "ts": [6], DELETED_AT: pa.array([at], pa.timestamp("us", tz="UTC"))}))
    assert table.to_arrow().num_rows == 0
    found = {row["id"]: row for row in table.to_arrow(deleted=True).to_pylist()}
    assert (found[1]["Op"], found[2]["Op"], found[2][DELETED_AT]) == (None, "U", at)


def test_a_table_becomes_one_with_soft_deletes_with_its_next_write(tmp_path: Path) -> None:
    table = make(tmp_path, properties={"lakehouse.deletes": "hard"})
    table.upsert(rows((1, "a", 10), (2, "b", 10)))
    set_soft_deletes(table.storage, lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    table = HoodieTable.open(table.storage.root)
    assert shown(table) == {1: ("a", 10), 2: ("b", 10)}
    table.upsert(rows((1, None, 20)))
    table.upsert(rows((1, "late", 15)))
    assert (shown(table), gone(table)) == ({2: ("b", 10)}, {1: 20})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"record_key": [], "ordering_fields": []}, "needs a record key"),
        ({"ordering_fields": []}, "needs an ordering field"),
        ({"properties": {"lakehouse.deletes": "sft"}}, "neither hard nor soft"),
        ({"properties": {PAYLOAD: MODELS + "PartialUpdateAvroPayload"}}, "PartialUpdateAvroPayload does not"),
        ({"properties": {PAYLOAD: MODELS + "OverwriteWithLatestAvroPayload"}}, "OverwriteWithLatestAvroPayload does not"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        make(tmp_path, **given)
    with pytest.raises(SchemaIncompatibleError, match="soft deletes keep their time"):
        make(tmp_path, schema=SCHEMA.append(pa.field(DELETED_AT, pa.int64())))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_insert_of_a_key_whose_deleted_row_is_kept_is_refused(tmp_path: Path, kind: str, index: str, route: str) -> None:
    properties = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table, options = make(tmp_path, kind, properties=properties), ROUTES[route]
    table.upsert(rows((1, "a", 10), (2, "b", 10)))
    table.upsert(rows((1, None, 20)))
    before = table.timeline
    for policy in ("none", "drop", "fail"):
        with pytest.raises(DuplicateKeyError, match=r"the key '1' was deleted, and its row is kept.*upsert or MERGE.*table=t"):
            table.insert(rows((3, "c", 30), (1, "back", 30)), options={"hoodie.datasource.insert.dup.policy": policy, **options})
    assert table.timeline == before
    table.insert(rows((3, "c", 30)), options=options)
    table.upsert(rows((1, "back", 30)), options=options)
    table.upsert(rows((1, "again", 31)), options=options)
    assert shown(table) == {1: ("again", 31), 2: ("b", 10), 3: ("c", 30)}
    assert table.to_arrow().num_rows == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_comes_back_has_nothing_of_the_deleted_one(tmp_path: Path, kind: str) -> None:
    table = make(tmp_path, kind)
    table.upsert(rows((1, "a", 10), (2, "b", 10)))
    table.upsert(rows((1, "old", 20)).set_column(4, "_hoodie_is_deleted", pa.array([True])))
    table.upsert(rows((1, "new", 30), (2, "new", 30)), merge_update_columns=["p"])
    assert shown(table) == {1: ("new", 30), 2: ("b", 30)}
    table.upsert(rows((1, "old", 40)).set_column(4, "_hoodie_is_deleted", pa.array([True])))
    table.upsert(rows((1, "", 50), (2, "", 50)).drop_columns(["v"]), options={EVOLVE: True})
    assert shown(table) == {1: (None, 50), 2: ("b", 50)}


@pytest.mark.parametrize("route", ROUTES)
def test_deletions_may_have_nulls_where_live_rows_may_not(tmp_path: Path, route: str) -> None:
    table, options = make(tmp_path), ROUTES[route]
    set_constraints(table.storage, lambda _: Constraints(not_null=("v",)), lock_timeout_ms=LOCK_TIMEOUT_MS.default)
    table.upsert(rows((1, "a", 10)), options=options)
    table.upsert(rows((1, None, 20), (2, None, 20)), options=options)
    assert (shown(table), gone(table)) == ({}, {1: 20, 2: 20})
    with pytest.raises(ConstraintError, match=r"'v' is null.*'1'"):
        table.upsert(rows((1, None, 30), (3, "c", 30)).drop_columns(["_hoodie_is_deleted"]), options={**options, EVOLVE: True})
