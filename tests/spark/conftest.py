"""One embedded Spark for the whole run; with LAKEHOUSE_CONNECT=1 one Spark Connect server, over which the same tests run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.support import connect_server
from tests.support.connect_server import ConnectServer
from tests.support.copying import copied
from tests.support.merging import merged, merging, unmerged
from tests.support.routes import route

__all__ = ["copied", "merged", "merging", "route", "unmerged"]

SESSION_CONF = {"spark.sql.session.timeZone": "UTC"}
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    **SESSION_CONF,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


CONNECT_CONF = {"spark.driver.memory": "2g"}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer | None]:
    if not connect_server.WANTED:
        yield None
        return
    with ConnectServer(tmp_path_factory.mktemp("connect") / "server", CONNECT_CONF) as running:
        yield running


@pytest.fixture(scope="session")
def root_session(server: ConnectServer | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if server is not None:
        yield server.session(**SESSION_CONF)
        return
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {**CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark"))}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def spark(server: ConnectServer | None, root_session: SparkSession) -> Iterator[SparkSession]:
    """A session with its own settings and temporary views."""
    if server is None:
        yield root_session.newSession()
        return
    # Python workers are of one session: new ones for each test would be most of what the suite takes.
    yield root_session
    root_session.sql("reset")
    for view in root_session.sql("show views").where("isTemporary").toArrow()["viewName"].to_pylist():
        root_session.catalog.dropTempView(view)
    for key, value in SESSION_CONF.items():
        root_session.conf.set(key, value)


@pytest.fixture
def lakehouse(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    warehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    warehouse.create_schema("shop")
    return warehouse
