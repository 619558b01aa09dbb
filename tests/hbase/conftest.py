"""A real HBase for the tests of this folder, which are skipped where `make hbase-setup` was not run."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hbase.server import HBaseServer

HERE = Path(__file__).parent
JARS = Path(os.environ.get("HBASE_JARS") or HERE.parents[1] / ".cache" / "hbase" / "jars")


def why_unavailable() -> str | None:
    """Why no HBase can run here, as a reason to skip."""
    if not any(JARS.glob("hbase-thrift-*.jar")):
        return f"HBase is not set up ({JARS} has no hbase-thrift): run `make hbase-setup`"
    if importlib.util.find_spec("happybase") is None:
        return "happybase is not on the path: run `make hbase`"
    return None if shutil.which("javac") else "no javac on the PATH"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_unavailable()
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBaseServer]:
    server = HBaseServer(JARS, tmp_path_factory.mktemp("hbase"))
    server.start()
    try:
        yield server
    finally:
        server.kill()
