"""Tables with a metadata table."""

from __future__ import annotations

import pytest

from lakehouse_engine.commit import participants
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.memory import MemoryStorage
from tests.support.followed_tables import FollowedTable
from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version

__all__ = ["pytest_generate_tests", "table_version"]


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No participant drops the metadata table or follows into it."""
    monkeypatch.setattr(participants, "_ALL", [])


@pytest.fixture
def followed(table_version: TableVersion) -> FollowedTable:
    return FollowedTable.create(MemoryStorage())
