"""Errors and results of the engine, as dbt sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.describe import statistics
from dbt.adapters.lakehouse.bridge.outcomes import ERRORS, dbt_error, is_write_result, mapped_class, response_of, retried
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from lakehouse_engine import Lakehouse, errors
from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.write_stats import WriteOperationType, WriteResult
from tests.dbt.unit.checking import check_options


def tree(kind: type[errors.LakehouseError]) -> Iterator[type[errors.LakehouseError]]:
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from tree(child)


@pytest.mark.parametrize("kind", sorted(tree(errors.LakehouseError), key=lambda kind: str(kind)))
def test_every_error_of_the_engine_is_mapped_by_the_table(kind: type[errors.LakehouseError]) -> None:
    assert any(base in ERRORS for base in kind.__mro__), f"{kind.__name__} has no entry in ERRORS"
    mapped = dbt_error(kind("what happened", table="s.t"))
    assert isinstance(mapped, mapped_class(kind))
    assert isinstance(mapped, DbtRuntimeError)
    assert "what happened [table=s.t]" in str(mapped)


def test_errors_of_spark_are_database_errors_without_their_stack() -> None:
    foreign = type("AnalysisException", (Exception,), {"__module__": "pyspark.errors"})
    mapped = dbt_error(foreign("[X] no column\n\tat org.apache.spark.X\n\tat Y"))
    assert isinstance(mapped, DbtDatabaseError)
    assert "[X] no column" in str(mapped)
    assert "org.apache" not in str(mapped)


@pytest.mark.parametrize(
    ("java", "told"),
    [
        ("org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 2 cancelled", "[SPARK_JOB_CANCELLED] Job 2 cancelled"),
        ("java.lang.OutOfMemoryError: Java heap space", "java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_errors_that_pyspark_does_not_know_are_told_without_the_call(java: str, told: str) -> None:
    foreign = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    for called in ("o182.collectToPython.", "z:org.apache.spark.sql.Dataset.ofRows."):
        mapped = dbt_error(foreign(f"An error occurred while calling {called}\n: {java}\n\tat org.apache.spark.X\n"))
        assert isinstance(mapped, DbtDatabaseError)
        assert mapped.msg == told


def test_errors_of_the_engine_that_spark_tells_of_are_those() -> None:
    foreign = type("SparkRuntimeException", (Exception,), {"__module__": "pyspark.errors"})
    told = "[USER_RAISED_EXCEPTION] \nlakehouse_engine.errors.SchemaIncompatibleError: the value 7 of n cannot be stored\n SQLSTATE: P0001"
    mapped = dbt_error(foreign(told))
    assert isinstance(mapped, DbtDatabaseError)
    assert mapped.msg == "the value 7 of n cannot be stored"


def test_other_errors_pass_through() -> None:
    error = KeyError("x")
    assert dbt_error(error) is error


def test_unknown_hoodie_key_is_a_config_error_with_the_nearest() -> None:
    with pytest.raises(DbtConfigError, match=r"did you mean 'hoodie.parquet.max.file.size'"):
        check_options({"hoodie.parquet.max.file.sze": "1"})


def test_conflicts_are_retried_and_nothing_else_is(monkeypatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    calls: list[int] = []

    def write() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise errors.CommitConflictError("busy")
        return "done"

    assert retried(write) == "done"
    assert len(calls) == 3
    with pytest.raises(errors.DuplicateKeyError):
        retried(lambda: (_ for _ in ()).throw(errors.DuplicateKeyError("twice")))


def test_a_commit_becomes_the_response_of_the_model() -> None:
    result = WriteResult(
        operation=WriteOperationType.UPSERT,
        table_type="COPY_ON_WRITE",
        instant="20261121101500000",
        previous_instant=None,
        inserts=12,
        updates=1191,
        files_updated=2,
        bytes_written=77,
    )
    fields = response_of(result).to_dict()
    assert fields["_message"] == "UPSERT 1,203 (12 new, 1,191 updated) @20261121101500000"
    assert (fields["instant"], fields["operation"], fields["table_type"]) == ("20261121101500000", "upsert", "cow")
    assert (fields["rows_affected"], fields["inserts"], fields["updates"], fields["bytes_written"]) == (1203, 12, 1191, 77)
    assert fields["failed_services"] is None
    failed = response_of(replace(result, failed_services=("the clean after the commit failed: why",))).to_dict()
    assert failed["failed_services"] == ["the clean after the commit failed: why"]


def test_no_new_data_says_so() -> None:
    result = WriteResult(operation=WriteOperationType.UPSERT, table_type="COPY_ON_WRITE", instant=None, previous_instant="2026")
    assert str(response_of(result)) == "UPSERT 0 (no new data)"


def test_commits_are_counted_back_as_everywhere_else_without_compactions(tmp_path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"], table_type="mor")
    first = table.upsert(pa.table({"id": [1, 2], "n": [1, 1]}))
    table.upsert(pa.table({"id": [2], "n": [2]}))
    assert table.compact().state == "completed"
    table.savepoint(name="monday")
    house = Warehouse(str(tmp_path))
    assert house.moment("s", "t", "-1") == first.instant
    assert house.moment("s", "t", "monday") == house.moment("s", "t", "latest") == table.savepoints()[0].instant
    with pytest.raises(OptionError, match=r"savepoint \(there are: 'monday'\)"):
        house.moment("s", "t", "tuesday")


def test_statistics_count_no_rows_while_there_are_logs(tmp_path) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"], table_type="mor")
    table.upsert(pa.table({"id": [1, 2], "n": [1, 1]}))
    house = Warehouse(str(tmp_path))
    assert [statistics(house.look("s", "t"))[name] for name in ("rows", "files")] == [2, 1]
    table.delete(pa.table({"id": [2]}))
    files = [path for path in (tmp_path / "s" / "t").iterdir() if path.suffix == ".parquet" or ".log." in path.name]
    found = statistics(house.look("s", "t"))
    assert (found["rows"], found["files"], found["bytes"]) == (None, 2, sum(path.stat().st_size for path in files))
    table.compact()
    assert statistics(house.look("s", "t"))["rows"] == 1


def test_a_look_at_a_table_without_generated_columns_reads_no_commit(tmp_path) -> None:
    """A table whose newest commit is torn can be built again by its model, which asks for such columns first."""
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    written = table.upsert(pa.table({"id": [1, 2]}))
    (tmp_path / "s" / "t" / ".hoodie" / f"{written.instant}.commit").write_bytes(b"torn")
    stored, rows = Warehouse(str(tmp_path)).look("s", "t"), pa.table({"id": [3]})
    assert stored.computable(["id"]) == {}
    assert stored.computed(rows) is rows
    assert stored.shape.record_key == ("id",)


def test_a_directory_in_the_place_of_properties_is_no_table(tmp_path) -> None:
    Lakehouse(str(tmp_path)).create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    (tmp_path / "s" / "odd" / ".hoodie" / "hoodie.properties").mkdir(parents=True)
    assert Warehouse(str(tmp_path)).relations("s") == [("t", "table")]


def test_defaults_of_the_profile_hold_for_tables_that_are_opened_by_name(tmp_path) -> None:
    Lakehouse(str(tmp_path)).create_table("s.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    with pytest.raises(OptionError, match="expected a positive whole number"):
        Warehouse(str(tmp_path), options={"hoodie.clean.commits.retained": "many"}).table("s", "t").clean()


def test_a_frame_that_has_attributes_of_any_name_is_no_write_result() -> None:
    """As those of Spark Connect."""

    class Frame:
        def __getattr__(self, name: str) -> str:
            return name

    assert not is_write_result(Frame())
