"""One cluster for the whole run, and a session on it for each module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.cluster.cluster import INTERPRETER, Cluster, conf
from tests.support.processes import wait_for


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Settings of its own a module has as `SPARK_CONF`."""
    builder = SparkSession.builder
    for key, value in {**conf(cluster, tmp_path_factory.mktemp("spark")), **getattr(request.module, "SPARK_CONF", {})}.items():
        builder = builder.config(key, value)
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = INTERPRETER
    session = builder.getOrCreate()
    try:
        wait_for("executors on both workers", lambda: len(cluster.executors()) >= 2 and registered(session) >= 2)
        yield session
    finally:
        session.stop()
        SparkSession._instantiatedSession = None
        wait_for("the end of the executors", lambda: not cluster.executors())
        if before is None:
            del os.environ["PYSPARK_PYTHON"]
        else:
            os.environ["PYSPARK_PYTHON"] = before


def registered(session: SparkSession) -> int:
    """Executors that the driver knows."""
    return int(session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


@pytest.fixture
def lakehouse(spark: SparkSession, tmp_path: Path) -> Lakehouse:
    warehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark.newSession())
    warehouse.create_schema("shop")
    return warehouse
