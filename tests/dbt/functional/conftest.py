"""One warehouse and one Spark for the whole run; every test class has a schema of its own.

With LAKEHOUSE_CONNECT=1 that Spark is a Spark Connect server; with LAKEHOUSE_STORE=s3 that warehouse is in a bucket, of which nothing else
in the profile says anything: credentials and endpoint are in the environment.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.factory import reset_adapters
from dbt.tests.fixtures.project import *  # noqa: F403 - as a plugin it could only be named by the top-level conftest

from dbt.adapters.lakehouse import environments
from dbt.adapters.lakehouse.environments.connect import ConnectEnvironment
from tests.support import connect_server
from tests.support.connect_server import ConnectServer
from tests.support.merging import merging  # noqa: F401 - every test of this folder has it

SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Small tables: compiling code and planning many tasks would take most of the time."""


HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.dbt)
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # dbt's own suite and its libraries warn a lot


@pytest.fixture(scope="session", autouse=True)
def pools_of_dbt() -> Iterator[None]:
    """A command that is cut off leaves its pool of threads to the collector, and warns of it: here, and not when pytest ends."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def warehouse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if "LAKEHOUSE_STORE" in os.environ:
        return str(request.getfixturevalue("bucket") / "warehouse")
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer | None]:
    if not connect_server.WANTED:
        yield None
        return
    with ConnectServer(tmp_path_factory.mktemp("connect") / "server", {**SPARK, "spark.driver.memory": "1500m"}) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def workers(server: ConnectServer | None) -> Iterator[None]:
    """They are ended with the sessions: one that is used again would look for its own."""
    yield
    if server is not None:
        for place in environments._current.values():
            assert isinstance(place, ConnectEnvironment)
            place._stop_all()
        server.end_workers()


@pytest.fixture(scope="session")
def connect_url(server: ConnectServer | None) -> str | None:
    return None if server is None else server.url


@pytest.fixture(scope="session")
def spark_keys(connect_url: str | None) -> dict[str, Any]:
    """The keys of a profile that say which Spark: every profile of these tests has them, since a process is for Connect or is not."""
    return {"spark_config": SPARK} if connect_url is None else {"method": "connect", "url": connect_url}


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: str, spark_keys: dict[str, Any]) -> dict[str, Any]:
    reset_adapters()  # a command that ran in this process has left its own, which dbt's fixture would take for this project's
    return {"type": "lakehouse", "threads": 4, "warehouse": warehouse, **spark_keys}
