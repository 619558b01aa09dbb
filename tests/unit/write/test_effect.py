"""What each operation does to file groups and stored rows, by the table and its options."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine import Lakehouse
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.write_stats import WriteOperationType as Op
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.view.table_state import TableState
from lakehouse_engine.write.batch.given import arrow_input
from lakehouse_engine.write.context import prepare
from lakehouse_engine.write.effect import Effect
from lakehouse_engine.write.request import WriteRequest

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64())])
ROWS = pa.table({"id": [1], "ts": [1]}, schema=SCHEMA)
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def effect(tmp_path, operation, kind="cow", properties=None, options=None, keys=("id",), **request) -> Effect:
    table = Lakehouse(str(tmp_path)).create_table(
        "s.t", schema=SCHEMA, record_key=keys, ordering_fields=["ts"] if keys else [], table_type=kind, properties=properties or {}
    )
    state = TableState.load(table.storage)
    asked = WriteRequest(operation, arrow_input(ROWS), WriteOptions.read({**(properties or {}), **(options or {})}), **request)
    return Effect.of(asked, prepare(state, asked))


@pytest.mark.parametrize(
    ("operation", "kind", "action", "new_groups", "compares", "looks_up"),
    [
        (Op.UPSERT, "cow", Action.COMMIT, False, True, True),
        (Op.UPSERT, "mor", Action.DELTA_COMMIT, False, True, True),
        (Op.DELETE, "mor", Action.DELTA_COMMIT, False, True, True),
        (Op.INSERT, "cow", Action.COMMIT, False, False, False),
        (Op.BULK_INSERT, "mor", Action.DELTA_COMMIT, True, False, False),
        (Op.INSERT_OVERWRITE, "cow", Action.REPLACE_COMMIT, True, False, False),
        (Op.INSERT_OVERWRITE_TABLE, "mor", Action.REPLACE_COMMIT, True, False, False),
    ],
)
def test_what_operations_do(tmp_path, operation, kind, action, new_groups, compares, looks_up):
    found = effect(tmp_path, operation, kind)
    assert (found.action, found.makes_new_groups, found.compares, found.looks_up) == (action, new_groups, compares, looks_up)
    assert found.is_streamed == new_groups  # nothing is combined, and no row can be a deletion


def test_an_insert_that_drops_stored_keys_compares(tmp_path):
    found = effect(tmp_path, Op.INSERT, options={"hoodie.datasource.insert.dup.policy": "drop"})
    assert found.compares
    assert found.looks_up


def test_a_bulk_insert_that_combines_is_not_streamed(tmp_path):
    found = effect(tmp_path, Op.BULK_INSERT, options={"hoodie.combine.before.insert": "true"})
    assert found.makes_new_groups
    assert (found.combines, found.is_streamed) == (True, False)


def test_inserts_into_logs_of_buckets_keep_one_row_a_key(tmp_path):
    assert effect(tmp_path / "mor", Op.BULK_INSERT, "mor", BUCKETS).combines
    found = effect(tmp_path / "cow", Op.BULK_INSERT, "cow", BUCKETS)
    assert (found.combines, found.makes_new_groups, found.looks_up) == (False, False, True)


def test_rows_without_keys_are_never_combined(tmp_path):
    found = effect(tmp_path, Op.BULK_INSERT, options={"hoodie.combine.before.insert": "true"}, keys=())
    assert (found.combines, found.is_streamed) == (False, True)


def test_inserts_meet_the_softly_deleted_rows_of_their_keys(tmp_path):
    soft = {"lakehouse.deletes": "soft"}
    found = effect(tmp_path / "insert", Op.INSERT, properties=soft)
    assert (found.compares, found.looks_up) == (False, True)
    found = effect(tmp_path / "bulk", Op.BULK_INSERT, properties=soft)
    assert (found.makes_new_groups, found.looks_up) == (True, False)


def test_rows_that_replace_numbered_ones_are_not_compared(tmp_path):
    numbers = arrow_input(pa.table({"_hoodie_commit_seqno": ["1"]}))
    found = effect(tmp_path, Op.UPSERT, replaced_rows=numbers)
    assert (found.compares, found.looks_up) == (False, True)


def test_an_insert_with_keys_to_delete_looks_up(tmp_path):
    found = effect(tmp_path, Op.INSERT, delete_keys=arrow_input(ROWS.select(["id"])))
    assert (found.compares, found.looks_up) == (False, True)


@pytest.mark.parametrize(
    ("operation", "asked", "drops"), [(Op.BULK_INSERT, None, False), (Op.BULK_INSERT, True, True), (Op.INSERT_OVERWRITE, None, True)]
)
def test_deletions_are_dropped_where_rows_can_be_deletions(tmp_path, operation, asked, drops):
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"])
    state = TableState.load(table.storage)
    request = WriteRequest(operation, arrow_input(schema.empty_table()), WriteOptions.read({}), drop_deletions=asked)
    found = Effect.of(request, prepare(state, request))
    assert (found.drops_deletions, found.is_streamed) == (drops, not drops)
