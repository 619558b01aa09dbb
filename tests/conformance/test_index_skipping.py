"""Filtered reads by the column statistics of metadata tables that Hudi wrote: the same rows, and files that are never opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakehouse_engine.errors import CorruptFileError
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.read import indexed
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.read.scan import Filters, plan_snapshot
from lakehouse_engine.read.skipping import without_ruled_out
from lakehouse_engine.read.sources import guarantees_for
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.view.table_state import TableState
from tests.conformance.test_metadata_check import forget_the_newest_commit, timeline
from tests.support.fixtures import EVERY_VERSION, fixtures_root, spark_fixtures, unpack_spark_fixture
from tests.support.readers import assert_same_rows

ROOT = fixtures_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
HUDI = Path("/") if ROOT is None else ROOT / "hudi-spark"
TABLES = [name for name in spark_fixtures(EVERY_VERSION) if "metadata/column_stats/" in (HUDI / f"{name}.timeline.json").read_text()]


@pytest.fixture(autouse=True)
def asks_for_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "WORTH_ASKING", 1)


def opened(folder: Path) -> TableState:
    return TableState.load(LocalStorage(str(folder)))


def read(folder: Path, condition: pc.Expression) -> pa.Table:
    return read_arrow(plan_query(opened(folder), Query(filters=condition)))


def conditions(rows: pa.Table) -> list[pc.Expression]:
    """Comparisons of each column with some of its values, and nulls."""
    found: list[pc.Expression] = []
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        column = pc.field(field.name)
        found.append(column.is_null())
        for value in pc.unique(rows[field.name]).drop_null().to_pylist()[:2]:
            scalar = pa.scalar(value, field.type)
            found += [column == scalar, column < scalar, column > scalar]
    return found


@pytest.mark.parametrize("name", TABLES)
def test_filtered_rows_are_the_same(name: str, tmp_path: Path) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    state = opened(folder)
    rows = read_arrow(plan_snapshot(state))
    passed_over = 0
    for condition in conditions(rows):
        before = plan_snapshot(state, filters=Filters(condition))
        plan = without_ruled_out(replace(before, guarantees=guarantees_for(state, Trusted(state), opening=False)))
        passed_over += len(before.files) - len(plan.files)
        assert_same_rows(read_arrow(plan), rows.filter(condition))
    assert passed_over or not plan_snapshot(state).files


@pytest.mark.parametrize("name", ["v6-0.15.0/cow_metadata", "v9-1.2.0/cow_metadata", "v9-1.2.0/cow_defaults"])
def test_files_that_statistics_rule_out_are_not_opened(name: str, tmp_path: Path) -> None:
    folder = unpack_spark_fixture(name, tmp_path)
    value = read_arrow(plan_snapshot(opened(folder)))["id"][0].as_py()
    condition = pc.field("id") == value
    chosen = {file.path for file in plan_query(opened(folder), Query(filters=condition)).files}
    others = [file for file in plan_snapshot(opened(folder)).files if file.path not in chosen]
    assert others
    for file in others:
        path = folder / file.path
        path.write_bytes(b"x" * path.stat().st_size)
    assert read(folder, condition)["id"].to_pylist() == [value]


def test_a_metadata_table_that_lags_is_not_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    rows = read_arrow(plan_snapshot(opened(folder)))
    condition = pc.field("id") == rows["id"][0].as_py()
    files = len(plan_snapshot(opened(folder)).files)
    assert len(plan_query(opened(folder), Query(filters=condition)).files) < files
    forget_the_newest_commit(folder)
    assert len(plan_query(opened(folder), Query(filters=condition)).files) == files
    assert "does not know of" in caplog.text


def test_a_metadata_table_that_cannot_be_read_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    rows = read_arrow(plan_snapshot(opened(folder)))
    condition = pc.field("id") == rows["id"][0].as_py()
    for path in (folder / ".hoodie" / "metadata" / "column_stats").glob("*.hfile"):
        path.write_bytes(path.read_bytes()[:100])
    assert read(folder, condition).num_rows == 1
    assert "in the metadata table of" in caplog.text
    assert "is not used" in caplog.text
    (timeline(folder).parent / "hoodie.properties").unlink()
    assert read(folder, condition).num_rows == 1


def test_a_spoiled_file_is_an_error_where_statistics_do_not_rule_it_out(tmp_path: Path) -> None:
    folder = unpack_spark_fixture("v9-1.2.0/cow_metadata", tmp_path)
    rows = read_arrow(plan_snapshot(opened(folder)))
    for file in plan_snapshot(opened(folder)).files:
        path = folder / file.path
        path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(CorruptFileError):
        read(folder, pc.field("id") == rows["id"][0].as_py())
