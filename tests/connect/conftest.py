"""One Spark Connect server for the whole run, as it comes: its sessions have Python workers of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.support.connect_server import WANTED, ConnectServer

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Once a session of Connect is made, PySpark makes no others in the process."""
    for item in items:
        if HERE in item.path.parents and not WANTED:
            item.add_marker(pytest.mark.skip(reason="a process is for one kind of session (make connect)"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect") / "server") as running:
        yield running


@pytest.fixture(scope="module")
def spark(server: ConnectServer) -> SparkSession:
    return server.session(**{"spark.sql.session.timeZone": "UTC"})


@pytest.fixture
def lakehouse(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    warehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    warehouse.create_schema("shop")
    return warehouse
