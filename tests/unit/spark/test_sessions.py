"""Sessions and executors that the engine cannot work with are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ExecutorStorageError, ExecutorVersionError, LakehouseError, UnsupportedSessionError
from lakehouse_engine.spark.handshake import Greeting, judge
from lakehouse_engine.spark.shipping import engine_digest
from lakehouse_engine.storage.local import LocalStorage

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


class _Remote:
    """As a session of Spark Connect."""

    __module__ = "pyspark.sql.connect.session"

    def createDataFrame(self) -> None: ...


def test_a_session_of_connect_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedSessionError, match="Spark Connect"):
        Lakehouse(str(tmp_path), spark=_Remote())  # type: ignore[arg-type]
    with pytest.raises(UnsupportedSessionError, match="Spark Connect"):
        HoodieTable.open(str(tmp_path), spark=_Remote())  # type: ignore[arg-type]


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
