"""One warehouse and one Spark session for the whole run; every test class has a schema of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - as a plugin it could only be named by the top-level conftest

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


HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.dbt)
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # dbt's own suite and its libraries warn a lot


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse: str) -> dict[str, Any]:
    return {"type": "lakehouse", "threads": 4, "warehouse": warehouse, "spark_config": SPARK}
