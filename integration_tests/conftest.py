"""The whole history of the project, run once: three batches, each built, the later two once more, without news.

Tests look at what it left behind, or go on from a copy. All of it shares one Spark session; Apache Hudi's own process comes last,
so that two JVMs are never busy together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from integration_tests.tests.support import tpch
from integration_tests.tests.support.dbt import INCREMENTAL, Project, Run, last_instant
from integration_tests.tests.support.expected import TABLES, Expected
from tests.interop.client import HudiJudge
from tests.interop.judging import VERSIONS, judging
from tests.support.depth import IS_FULL

HERE = Path(__file__).parent
RERUN = (2, 3)
MERGE_ON_READ = "{table_type: mor}"
STORED = ("staging", "incremental", "resource_type:snapshot")

# Spark's workers would take the first `python3` of the PATH, which need not have the project installed.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# No process that makes a class archive in the home directory is left behind.
os.environ["LAKEHOUSE_JVM_CACHE"] = "false"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.timeout(1800))  # whichever test is first waits for the whole history
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # dbt and its libraries warn a lot
    items.sort(key=lambda item: item.get_closest_marker("interop") is not None)


@dataclass
class History:
    """`instants[batch][table]` is the table's newest write after a batch, `again` the same after building once more.

    `mor` is the same project with its incremental tables and snapshots as merge-on-read, built from the same batches.
    """

    project: Project
    mor: Project
    feed: tpch.Feed
    builds: dict[int, Run] = field(default_factory=dict)
    rebuilds: dict[int, Run] = field(default_factory=dict)
    instants: dict[int, dict[str, str]] = field(default_factory=dict)
    again: dict[int, dict[str, str]] = field(default_factory=dict)
    mor_builds: dict[int, Run] = field(default_factory=dict)
    mor_instants: dict[int, dict[str, str]] = field(default_factory=dict)
    after_second: Project | None = None

    def run(self, batch: int) -> None:
        self.feed.deliver(batch)
        self.builds[batch] = self.project.dbt("build")
        assert not self.builds[batch].failures()
        self.instants[batch] = self._instants()
        self._run_merge_on_read(batch)
        if batch in RERUN:
            self.rebuilds[batch] = self.project.dbt("build", "--exclude-resource-type", "test", "unit_test")
            assert not self.rebuilds[batch].failures()
            self.again[batch] = self._instants()

    def _run_merge_on_read(self, batch: int) -> None:
        arguments = ("--vars", MERGE_ON_READ, "--select", *STORED, "--exclude-resource-type", "test", "unit_test")
        self.mor_builds[batch] = self.mor.dbt("build", *arguments)
        assert not self.mor_builds[batch].failures()
        self.mor_instants[batch] = {name: last_instant(self.mor.table(name)) for name in INCREMENTAL}

    def _instants(self) -> dict[str, str]:
        return {name: last_instant(self.project.table(name)) for name in TABLES}


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    root = tmp_path_factory.mktemp("tpch")
    feed = tpch.Feed(root / "landing", root / "archive")
    history = History(Project(root / "project", root / "landing"), Project(root / "mor", root / "landing"), feed)
    for batch in tpch.BATCHES:
        history.run(batch)
        if batch == 2:
            history.after_second = history.project.copy_to(root / "after_second")
    return history


@pytest.fixture(scope="session")
def expected(history: History) -> Callable[[int], Expected]:
    """Results after a batch, by plain Spark SQL."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    known: dict[int, Expected] = {}

    def after(batch: int) -> Expected:
        if batch not in known:
            known[batch] = Expected(spark, history.feed, batch)
        return known[batch]

    return after


@pytest.fixture(scope="session", params=VERSIONS if IS_FULL else VERSIONS[-1:])
def hudi(request: pytest.FixtureRequest) -> Iterator[HudiJudge]:
    yield from judging(request.param)
