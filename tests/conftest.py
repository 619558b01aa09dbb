"""What holds for every suite."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

from tests.support import selection
from tests.support.matching import joined
from tests.support.selection import pytest_addoption

__all__ = ["joined", "pytest_addoption"]

# Spark's workers would take the first `python3` of the PATH, which need not have the project installed.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
# No test depends on what earlier runs left in the home directory, or leaves a process that makes a class archive there.
os.environ["LAKEHOUSE_JVM_CACHE"] = "false"

# On a busy machine a deadline measures the neighbours. CI searches the same examples each time; at home new ones.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# Nothing here cuts the power, and waiting for the disk is most of what many tests would do. That the engine syncs, and in which order
# with what, `tests/unit/storage/test_local.py` shows by watching the calls; other processes sync.
os.fsync = lambda fd: None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After the suites' own hooks: what they leave is what a limited run chooses from."""
    selection.select(config, items)


def pytest_configure(config: pytest.Config) -> None:
    """With LAKEHOUSE_STORE=s3 tests have their tables in a bucket."""
    config.addinivalue_line("markers", "table_versions(*versions): the only table versions that a test is about")
    if config.getoption("--record"):
        config.pluginmanager.register(selection.Recorder())
    if "LAKEHOUSE_STORE" in os.environ:
        config.pluginmanager.register(import_module("tests.object_store.suites"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if choice := config.stash.get(selection.CHOICE, ""):
        terminalreporter.write_line(f"selected {choice}")
