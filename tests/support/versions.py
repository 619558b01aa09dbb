"""Which table version the tables of a test are made in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import Storage

VERSIONS = (6, 9)
_VERSION: ContextVar[TableVersion] = ContextVar("version", default=TableVersion.SIX)


@contextmanager
def tables_of(version: int) -> Iterator[None]:
    """Makers of tables below `tests/support` make them in this version meanwhile."""
    token = _VERSION.set(TableVersion(version))
    try:
        yield
    finally:
        _VERSION.reset(token)


def version_of_new_tables() -> TableVersion:
    return _VERSION.get()


def parametrize_by_version(metafunc: pytest.Metafunc) -> None:
    """Run a test once in each of `VERSIONS`, or in those that its mark `table_versions` names; for `pytest_generate_tests` of a conftest,
    next to `table_version`.
    """
    mark = metafunc.definition.get_closest_marker("table_versions")
    versions = VERSIONS if mark is None else mark.args
    metafunc.parametrize("table_version", versions, indirect=True, ids=[f"v{version}" for version in versions])


@pytest.fixture(autouse=True)
def table_version(request: pytest.FixtureRequest) -> Iterator[TableVersion]:
    """The version in which the tables of a test are made."""
    with tables_of(request.param):
        yield version_of_new_tables()


def timeline_folder(storage: Storage) -> str:
    """Where a table has its state files."""
    return ".hoodie" if b"hoodie.timeline.layout.version=1" in storage.read(".hoodie/hoodie.properties") else ".hoodie/timeline"


def state_path(storage: Storage, name: str) -> str:
    """The state file that version 6 calls `name`, as "<instant>.commit" or "<instant>.clean.inflight". Where completed ones are named with
    a completion time and there is none, a path where nothing is.
    """
    folder = timeline_folder(storage)
    time, _, kind = name.partition(".")
    if folder == ".hoodie" or kind.endswith(("inflight", "requested")):
        return f"{folder}/{name}"
    named = re.compile(rf"{time}_[0-9]+\.{kind}")
    return next((entry.path for entry in storage.list(folder) if named.fullmatch(entry.name)), f"{folder}/{time}_0.{kind}")


def action_of(name: str) -> str:
    """What a state file's name says behind its times: "commit", "clean.inflight"."""
    return name.partition(".")[2]
