"""Executors that cannot do the work are refused before anything is written, and the error says what to do."""

from __future__ import annotations

import shutil
import venv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ExecutorStorageError, ExecutorVersionError
from lakehouse_engine.spark.tasks import shipping
from lakehouse_engine.spark.tasks.handshake import check_executors
from tests.cluster.cluster import ROOT, Cluster, can_hide
from tests.cluster.conftest import registered
from tests.support.processes import stop, wait_for

SPARK_CONF = {"spark.task.maxFailures": "1"}

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})


@pytest.fixture
def table(lakehouse: Lakehouse) -> HoodieTable:
    return lakehouse.create_table("shop.t", schema=ROWS.schema, record_key=["id"])


@pytest.fixture
def restored(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session whose Python workers a test may change; it has not sent them the engine."""
    context = spark.sparkContext
    interpreter, environment = context.pythonExec, dict(context.environment)
    monkeypatch.setattr(shipping, "_shipped", set())
    yield spark
    context.pythonExec = interpreter
    context._python_includes.clear()
    context.environment.clear()
    context.environment.update(environment)


def everything(table: HoodieTable) -> dict[str, bytes]:
    folder = Path(table.path)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def write_refused(table: HoodieTable, spark: SparkSession, error: type[Exception], match: str) -> None:
    """Rows from Arrow and from a DataFrame are refused alike, and nothing in the table's directory is other than before."""
    before = everything(table)
    with pytest.raises(error, match=match):
        table.upsert(ROWS)
    stored = HoodieTable.open(table.path, spark=spark, options={"lakehouse.task.runner": "LOCAL"})
    with pytest.raises(error, match=match):
        stored.bulk_insert(spark.createDataFrame(ROWS))
    assert everything(table) == before


def test_an_interpreter_without_the_libraries_is_refused(table: HoodieTable, restored: SparkSession, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    restored.sparkContext.pythonExec = str(tmp_path / "bare" / "bin" / "python")
    before = everything(table)
    with pytest.raises(ExecutorVersionError, match="set PYSPARK_PYTHON"):
        table.upsert(restored.createDataFrame(ROWS))  # once: Spark tries for a while
    assert everything(table) == before


def test_an_interpreter_that_is_not_there_is_refused(table: HoodieTable, restored: SparkSession) -> None:
    restored.sparkContext.pythonExec = "/nowhere/python3"
    write_refused(table, restored, ExecutorVersionError, "set PYSPARK_PYTHON")


def test_another_engine_is_refused_until_the_drivers_is_sent(table: HoodieTable, restored: SparkSession, tmp_path: Path) -> None:
    other = tmp_path / "other" / "lakehouse_engine"
    shutil.copytree(ROOT / "lakehouse_engine", other, ignore=shutil.ignore_patterns("__pycache__"))
    (other / "errors.py").write_text((other / "errors.py").read_text() + "\n\nOLDER = True\n")
    restored.sparkContext.environment["PYTHONPATH"] = str(other.parent)
    write_refused(table, restored, ExecutorVersionError, "another engine.*lakehouse.ship.engine=true")
    ship(table)


def test_no_engine_is_refused(table: HoodieTable, restored: SparkSession, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "lakehouse_engine"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'lakehouse_engine'\")\n")
    restored.sparkContext.environment["PYTHONPATH"] = str(broken.parent)
    write_refused(table, restored, ExecutorVersionError, "cannot import the engine.*lakehouse.ship.engine=true")
    ship(table)


def ship(table: HoodieTable) -> None:
    table.bulk_insert(ROWS, options={"lakehouse.ship.engine": "true"})
    table.upsert(pa.table({"id": [2], "v": ["B"]}))
    assert table.to_arrow(["id", "v"]).sort_by("id").to_pydict() == {"id": [1, 2, 3], "v": ["a", "B", "c"]}


@pytest.mark.skipif(not can_hide(), reason="mount namespaces (unshare -m) are not allowed here")
def test_an_executor_without_the_shared_directory_is_refused(cluster: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    lakehouse = Lakehouse(str(hidden), spark=spark)
    lakehouse.create_schema("shop")
    table = lakehouse.create_table("shop.t", schema=ROWS.schema, record_key=["id"])
    before = registered(spark)
    worker = cluster.add_worker(hidden)
    try:
        wait_for("an executor on the new worker", lambda: registered(spark) == before + 1)
        write_refused(table, spark, ExecutorStorageError, "mount the warehouse under the same path on every worker")
    finally:
        stop(worker)
        wait_for("the loss of its executor", lambda: registered(spark) == before)
    table.bulk_insert(ROWS)
    assert table.to_arrow().num_rows == 3


def test_the_question_leaves_nothing_behind(table: HoodieTable, spark: SparkSession) -> None:
    before = everything(table)
    check_executors(spark, table.storage)
    assert everything(table) == before


def test_a_dry_run_does_not_ask(lakehouse: Lakehouse, restored: SparkSession) -> None:
    table = lakehouse.create_table("shop.logged", schema=ROWS.schema, record_key=["id"], table_type="mor")
    HoodieTable.open(table.path).insert(ROWS)
    HoodieTable.open(table.path).upsert(ROWS)
    restored.sparkContext.pythonExec = "/nowhere/python3"
    assert table.compact(dry_run=True) is not None
