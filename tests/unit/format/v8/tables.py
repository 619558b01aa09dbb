"""The tables of versions 8 and 9 that Hudi wrote, as bytes by path."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from functools import lru_cache

import pytest

from tests.support.fixtures import fixtures_root, spark_fixtures

TABLES = spark_fixtures(("v8-1.2.0", "v9-1.2.0"))
needs_fixtures = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")
ACTIVE = (".hoodie/timeline/", ".hoodie/metadata/.hoodie/timeline/")
"""Folders of active timelines: the table's, and that of its metadata table."""


@lru_cache(maxsize=2)
def files_of(name: str) -> dict[str, bytes]:
    """Every file of a table, by its path relative to it."""
    root = fixtures_root()
    assert root is not None
    found: dict[str, bytes] = {}
    with tarfile.open(root / "hudi-spark" / f"{name}.tar.gz") as archive:
        for member in archive:
            top, _, path = member.name.removeprefix("./").partition("/")
            if member.isfile() and top == name.split("/")[1]:
                content = archive.extractfile(member)
                assert content is not None
                found[path] = content.read()
    assert found
    return found


def listed_sizes(name: str) -> dict[str, int]:
    """Path and size of every file below `.hoodie`, as Hudi left them."""
    root = fixtures_root()
    assert root is not None
    sizes: dict[str, int] = json.loads((root / "hudi-spark" / f"{name}.timeline.json").read_text())
    return sizes


def state_files(name: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in the active timelines."""
    for path, content in files_of(name).items():
        folder, _, file_name = path.rpartition("/")
        if f"{folder}/" in ACTIVE:
            yield file_name, content
