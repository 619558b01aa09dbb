"""Suites that were written for directories and for memory, run again over a bucket with their tests as they are.

LAKEHOUSE_STORE   s3: only tests of `selection.py` are run, and their tables are in a bucket of the lane's server;
                  az, gs: in one of a server that speaks as Azure or Google do (`emulators.py`);
                  memory: in one of obstore's own memory, which takes a tenth of the time

`tmp_path` is a place in the bucket then, which does what the tests do with a `Path` (`BucketPath`), and where a module says `LocalStorage`
or `MemoryStorage` it gets the storage of the bucket. Credentials and endpoint are in the environment, as a user may have them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.memory import MemoryStorage
from lakehouse_engine.storage.objects import store as object_store
from lakehouse_engine.storage.objects.store import ObjectStorage
from tests.object_store.bucket_path import SCHEME, AnyParquet, AnyPath, AnyTree, BucketPath, in_memory
from tests.object_store.dbt_store import Store, s3_store
from tests.object_store.emulators import azure_store, google_store
from tests.object_store.selection import left_out, selected
from tests.support.dbt_project import Project

__all__ = ["azure_store", "bucket", "google_store", "in_bucket", "s3_store", "tmp_path"]
_ROOTS = ("tests.unit.", "tests.model_based.", "tests.conformance.", "tests.support.", "tests.dbt.functional.")
DBT = "tests/dbt/functional/"
_SERVERS = {"s3": "s3_store", "az": "azure_store", "gs": "google_store"}
_numbers = count(1)
_here: list[BucketPath] = []


class Anew(ObjectStorage):
    """Stands for `MemoryStorage`: each is of its own."""

    def __init__(self, root: str = "") -> None:
        super().__init__(str(_here[-1] / f"memory-{next(_numbers)}"))


_INSTEAD: dict[Any, Any] = {LocalStorage: ObjectStorage, MemoryStorage: Anew, Path: AnyPath, shutil: AnyTree, pq: AnyParquet()}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of the selection, and have their modules use the bucket."""
    kept = [item for item in items if selected(item.nodeid)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
    for name, module in sorted(sys.modules.items()):
        if name.startswith(_ROOTS):
            for key, value in list(vars(module).items()):
                if isinstance(value, type | ModuleType) and value in _INSTEAD:
                    setattr(module, key, _INSTEAD[value])
    Project.place = staticmethod(lambda folder: _here[-1] / f"lakehouse-{next(_numbers)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(
        f"over a bucket: {left_out()} tests and modules left out, each with its reason: tests/object_store/selection.py"
    )


@pytest.fixture(scope="session", autouse=True)
def bucket(request: pytest.FixtureRequest) -> Iterator[BucketPath]:
    with pytest.MonkeyPatch.context() as patch:
        if os.environ["LAKEHOUSE_STORE"] == "memory":
            patch.setattr(object_store, "_from_url", lambda location, **named: in_memory(location))
            _here.append(BucketPath("s3://memory/session"))
            yield BucketPath("s3://memory")
            return
        store: Store = request.getfixturevalue(_SERVERS[SCHEME])
        for name, value in store.for_hudi_rs.items():
            patch.setenv(name, value)
        _here.append(BucketPath(store.place("suites/session")))
        yield BucketPath(store.place("suites"))


@pytest.fixture(autouse=True)
def in_bucket(bucket: BucketPath) -> Iterator[BucketPath]:
    """A place of this test's own, which is empty again after it."""
    place = bucket / next(_numbers)
    _here.append(place)
    yield place
    _here.remove(place)
    place.remove_all()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, in_bucket: BucketPath, tmp_path_factory: pytest.TempPathFactory) -> BucketPath | Path:
    """Projects of dbt are in a directory whatever their warehouse is in."""
    return tmp_path_factory.mktemp("project") if request.node.nodeid.startswith(DBT) else in_bucket / "lake"
