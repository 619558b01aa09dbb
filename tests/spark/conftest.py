"""One embedded Spark for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.support.routes import route

__all__ = ["route"]

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def root_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in {**CONF, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark"))}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def spark(root_session: SparkSession) -> SparkSession:
    """A child session: its own settings and temporary views."""
    return root_session.newSession()


@pytest.fixture
def lakehouse(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    warehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    warehouse.create_schema("shop")
    return warehouse
