"""Merge-on-read tables that Hudi wrote are gone on with: what we update, delete and insert reads so here and with hudi-rs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable
from lakehouse_engine.errors import LakehouseError, UnsupportedTableError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.timeline.timeline import Timeline
from tests.support.fixtures import EVERY_VERSION, fixtures_root, rs_fixtures, spark_fixtures, unpack_rs_fixture, unpack_spark_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

KEEP = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 4}

REFUSED: dict[str, tuple[type[LakehouseError], str]] = {
    "mor_bootstrap_metadata_only": (UnsupportedTableError, "METADATA_ONLY"),
    "mor_cdc_data_before": (UnsupportedTableError, "change data capture"),
    "mor_bucket_consistent": (UnsupportedTableError, "consistent hashing buckets"),
    "mor_cdc_data_before_after": (UnsupportedTableError, "change data capture"),
    "mor_cdc_op_key_only": (UnsupportedTableError, "change data capture"),
    "mor_schema_on_read": (UnsupportedTableError, "schema-on-read"),
}
OTHERWISE_IN_HUDI_RS = {
    "mor_add_column": "it does not widen a column in the middle of a table's life",
    "mor_bucket": "it leaves groups out that have no base file",
    "mor_compaction_pending": "logs on a pending compaction are no part of the slice before to it",
    "mor_merge_default_payload": "it merges older deletions of Hudi's own in another way than Hudi 0.15",
    "mor_merge_partial_update": "it refuses the payload",
    "mor_timestamp_ntz": "the type is not implemented in it",
}
TABLES = [name for name in spark_fixtures(EVERY_VERSION, "mor") if name.rpartition("/")[2] not in REFUSED]


def opened(name: str, folder: Path) -> HoodieTable:
    path = unpack_spark_fixture(name, folder) if "/" in name else unpack_rs_fixture(name, folder)
    return HoodieTable.open(str(path))


def marked(table: HoodieTable, rows: pa.Table) -> pa.Table:
    """The rows with other text in a column that decides on nothing, where there is one."""
    config = table.config
    fixed = {*config.record_key_fields, *config.partition_fields, *config.ordering_fields}
    names = [field.name for field in rows.schema if pa.types.is_string(field.type) and field.name not in fixed]
    if not names:
        return rows
    text = pa.array([f"changed {number}" for number in range(rows.num_rows)])
    return rows.set_column(rows.schema.get_field_index(names[0]), names[0], text)


def check(table: HoodieTable, expected: pa.Table, name: str) -> None:
    assert_same_rows(table.to_arrow(), expected)
    if table.config.populates_meta_fields and name.rpartition("/")[2] not in OTHERWISE_IN_HUDI_RS:
        assert_same_rows(user_columns(read_with_hudi_rs(table.path)), expected)


def every_other(rows: pa.Table, first: int) -> pa.Table:
    return rows.take(pa.array(range(first, rows.num_rows, 2), pa.int64()))


@pytest.mark.parametrize("name", [*TABLES, *rs_fixtures("mor")])
def test_rows_of_a_table_of_hudi_are_updated_and_deleted_in_its_logs(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    options = {**KEEP, **(BUCKETS if name.endswith("/mor_bucket") else {})}
    before = table.to_arrow()
    changed, kept = marked(table, every_other(before, 0)), every_other(before, 1)
    if not table.config.record_key_fields:
        table.insert(changed, options=options)
        check(table, pa.concat_tables([before, changed]), name)
        return
    if not before.num_rows:
        pytest.skip("the table has no rows to change")
    result = table.upsert(changed, options=options)
    assert (result.inserts, result.updates, result.deletes) == (0, changed.num_rows, 0)
    assert result.log_files
    check(table, pa.concat_tables([kept, changed]), name)
    gone = changed.slice(0, -(-changed.num_rows // 2))
    assert table.delete(gone, options=options).deletes == gone.num_rows
    check(table, pa.concat_tables([kept, changed.slice(gone.num_rows)]), name)
    back = table.upsert(gone, options=options)
    assert (back.inserts, back.updates) == (gone.num_rows, 0)
    check(table, pa.concat_tables([kept, changed]), name)
    assert {instant.action for instant in table.timeline.completed().instants[-3:]} == {Action.DELTA_COMMIT}


@pytest.mark.parametrize("name", [name for name in spark_fixtures(EVERY_VERSION, "mor") if name.rpartition("/")[2] in REFUSED])
def test_tables_that_we_would_write_wrongly_are_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    error, reason = REFUSED[name.rpartition("/")[2]]
    before = _state(table)
    with pytest.raises(error, match=reason):
        table.delete(table.to_arrow(), options=KEEP)
    with pytest.raises(error, match=reason):
        table.upsert(_rows(table), options=KEEP)
    assert _state(table) == before


def _state(table: HoodieTable) -> tuple[list[Path], Timeline]:
    """Data files and timeline."""
    root = Path(table.path)
    return sorted(path for path in root.rglob("*") if path.is_file() and ".hoodie" not in path.relative_to(root).parts), table.timeline


def _rows(table: HoodieTable) -> pa.Table:
    try:
        return table.to_arrow()
    except UnsupportedTableError:
        return table.schema.empty_table()
