"""Sessions and executors that the engine cannot work with are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ExecutorStorageError, ExecutorVersionError, LakehouseError, UnsupportedSessionError
from lakehouse_engine.spark.tasks.handshake import Greeting, judge
from lakehouse_engine.spark.tasks.shipping import engine_digest
from lakehouse_engine.storage.local import LocalStorage

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


class _Remote:
    """As a session of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"

    is_stopped = False

    def createDataFrame(self) -> None: ...

    def stop(self) -> None:
        self.is_stopped = True


class _WithMaster:
    """As a session with a SparkContext."""

    __module__ = "pyspark.sql.session"

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(_jsc=object())

    def createDataFrame(self) -> None: ...

    def stop(self) -> None:
        self.sparkContext._jsc = None


def test_a_session_of_connect_that_pyspark_was_not_told_of_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
    with pytest.raises(UnsupportedSessionError, match=r"builder\.remote"):
        Lakehouse(str(tmp_path), spark=_Remote())  # type: ignore[arg-type]
    with pytest.raises(UnsupportedSessionError, match=r"builder\.remote"):
        HoodieTable.open(str(tmp_path), spark=_Remote())  # type: ignore[arg-type]


def test_a_session_with_a_master_is_refused_in_a_process_of_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(UnsupportedSessionError, match="one kind of session in a process"):
        Lakehouse(str(tmp_path), spark=_WithMaster())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [_WithMaster, _Remote])
def test_a_session_that_was_stopped_is_named_by_each_use_of_it(kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind is _Remote:
        monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    else:
        monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
    session = kind()
    lakehouse = Lakehouse(str(tmp_path), spark=session)
    table = lakehouse.create_table("shop.t", schema=pa.schema([("id", pa.int64())]), record_key=["id"])
    session.stop()
    for use in (
        lambda: lakehouse.sql("select 1"),
        table.dataframe,
        lambda: table.upsert(pa.table({"id": [1]}), options={"lakehouse.task.runner": "SPARK"}),
        lambda: Lakehouse(str(tmp_path), spark=session),
    ):
        with pytest.raises(UnsupportedSessionError, match="the Spark session was stopped: get a new one"):
            use()
    assert table.to_arrow().num_rows == 0
    assert table.upsert(pa.table({"id": [1]}), options={"lakehouse.task.runner": "LOCAL"}).inserts == 1


def test_executors_that_are_as_the_driver_pass(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create("made", b"")
    judge([Greeting("one", PYTHON, engine_digest(), "", b"token", "made")] * 2, storage, b"token")


@pytest.mark.parametrize(
    ("greeting", "error", "match"),
    [
        (Greeting("far", "2.7", "digest"), ExecutorVersionError, r"far runs Python 2\.7.*PYSPARK_PYTHON"),
        (Greeting("far", PYTHON, None, "ModuleNotFoundError: none"), ExecutorVersionError, "far cannot import the engine.*ship"),
        (Greeting("far", PYTHON, "other", "version 0.1"), ExecutorVersionError, r"far has another engine \(version 0.1\)"),
        (Greeting("far", PYTHON, engine_digest(), "", None), ExecutorStorageError, "far does not find what the driver wrote"),
        (Greeting("far", PYTHON, engine_digest(), "", b"old"), ExecutorStorageError, "far finds something else"),
        (Greeting("far", PYTHON, engine_digest(), "", None, None, "failed (read-only)"), ExecutorStorageError, "read-only.*mount"),
        (Greeting("far", PYTHON, engine_digest(), "", b"token", "unseen"), ExecutorStorageError, "far created a file"),
    ],
    ids=["python", "no engine", "other engine", "no token", "old token", "read-only", "unseen"],
)
def test_one_executor_that_differs_is_named(tmp_path: Path, greeting: Greeting, error: type[LakehouseError], match: str) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create("made", b"")
    fine = Greeting("near", PYTHON, engine_digest(), "", b"token", "made")
    with pytest.raises(error, match=match) as caught:
        judge([fine, greeting], storage, b"token")
    assert caught.value.context == {"table": str(tmp_path), "host": "far"}
