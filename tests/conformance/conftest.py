"""What the tests over tables of Hudi share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fixtures import Unpack, unpack_spark_fixture


@pytest.fixture(scope="module")
def unpack(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """The directory of a table, unpacked once."""
    unpacked: dict[str, Path] = {}

    def path_of(table: str) -> Path:
        if table not in unpacked:
            unpacked[table] = unpack_spark_fixture(table, tmp_path_factory.mktemp("table"))
        return unpacked[table]

    return path_of
