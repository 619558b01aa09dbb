"""The judge itself: its readings of tables made by Hudi are the recorded ones, and it writes, calls and fails as asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.interop.client import HudiError, HudiJudge, copy_table
from tests.support.fixtures import expected_readings, fixtures_root, unpack_spark_fixture
from tests.support.readers import assert_same_rows, read_with_hudi_rs, user_columns

needs_fixtures = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

READINGS = [
    "v6-0.15.0/cow_types",
    "v6-0.15.0/cow_nonpartitioned",
    "v6-0.15.0/cow_overwrite",
    "v6-0.15.0/cow_clean_commits",
    "v6-0.15.0/mor_compaction",
]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.enable": "false",
}


def rows(*values: tuple[str, int, str]) -> pa.Table:
    names = ("id", "ts", "p")
    return pa.table({name: [value[index] for value in values] for index, name in enumerate(names)})


@needs_fixtures
@pytest.mark.parametrize("hudi", ["0.15.0"], indirect=True)
@pytest.mark.parametrize("name", READINGS)
def test_a_fixture_is_read_as_recorded(hudi: HudiJudge, name: str, tmp_path: Path) -> None:
    path = unpack_spark_fixture(name, tmp_path)
    folder, readings = expected_readings(name)
    for reading, recorded in readings.items():
        options = {str(key): str(value) for key, value in dict(recorded["options"]).items()}
        if "error" in recorded:
            with pytest.raises(HudiError):
                hudi.read(path, options=options)
        else:
            assert_same_rows(hudi.read(path, options=options), pq.ParquetFile(folder / f"{reading}.parquet").read())


@needs_fixtures
def test_a_table_of_another_hudi_is_read_the_same(hudi: HudiJudge, tmp_path: Path) -> None:
    path = unpack_spark_fixture("v6-0.15.0/cow_types", tmp_path)
    folder, _ = expected_readings("v6-0.15.0/cow_types")
    assert_same_rows(hudi.read(path), pq.ParquetFile(folder / "snapshot.parquet").read())


def test_a_table_that_the_judge_writes_stays_at_version_6_and_is_read_by_hudi_rs(hudi: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(path, rows(("a", 1, "x"), ("b", 1, "y")), {**OPTIONS, "hoodie.datasource.write.operation": "insert"})
    hudi.write(path, rows(("b", 2, "y"), ("c", 2, "y")), {**OPTIONS, "hoodie.datasource.write.operation": "upsert"})
    assert "hoodie.table.version=6\n" in (path / ".hoodie" / "hoodie.properties").read_text()
    expected = rows(("a", 1, "x"), ("b", 2, "y"), ("c", 2, "y"))
    assert_same_rows(user_columns(hudi.read(path)), expected)
    assert_same_rows(read_with_hudi_rs(path), hudi.read(path))
    first, second = sorted(instant.name.split(".")[0] for instant in (path / ".hoodie").glob("*.commit"))
    assert_same_rows(user_columns(hudi.read(path, as_of=first)), rows(("a", 1, "x"), ("b", 1, "y")))
    assert_same_rows(user_columns(hudi.read(path, begin=first, end=second)), rows(("b", 2, "y"), ("c", 2, "y")))
    assert_same_rows(read_with_hudi_rs(path, begin=first, end=second), hudi.read(path, begin=first, end=second))


def test_a_procedure_changes_the_copy_and_not_the_table(hudi: HudiJudge, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hudi.write(path, rows(("a", 1, "x")), {**OPTIONS, "hoodie.datasource.write.operation": "insert"})
    copy = copy_table(path, tmp_path / "copy")
    (instant,) = [file.name.split(".")[0] for file in (copy / ".hoodie").glob("*.commit")]
    without_metadata_table = {"hoodie.metadata.enable": "false"}
    name = hudi.register(copy)
    hudi.call("create_savepoint", table=name, commit_time=instant, user="u", comments="it's one", conf=without_metadata_table)
    shown = hudi.call("show_savepoints", table=name)
    assert shown is not None
    assert shown.column("savepoint_time").to_pylist() == [instant]
    assert [file.name for file in (path / ".hoodie").glob("*.savepoint")] == []


def test_an_error_of_hudi_names_its_root_cause_and_the_judge_goes_on(hudi: HudiJudge, tmp_path: Path) -> None:
    with pytest.raises(HudiError, match="nowhere"):
        hudi.read(tmp_path / "nowhere")
    assert hudi.sql("select 1 as one").to_pydict() == {"one": [1]}


def test_settings_of_a_request_end_with_it(hudi: HudiJudge) -> None:
    answer = hudi.sql("select current_timezone() as zone", conf={"spark.sql.session.timeZone": "Asia/Tokyo"})
    assert answer.to_pydict() == {"zone": ["Asia/Tokyo"]}
    assert hudi.sql("select current_timezone() as zone").to_pydict() == {"zone": ["UTC"]}
