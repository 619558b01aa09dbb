"""Tests that run with tables of more versions than one: a module that imports `version` runs each of its tests with each."""

from __future__ import annotations

import pytest

from lakehouse_engine.model.table_version import TableVersion
from tests.unit.services.clean import tables


@pytest.fixture(autouse=True, params=[TableVersion.SIX, TableVersion.NINE], ids=["v6", "v9"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TableVersion:
    """The version of the tables that `new_table` makes."""
    chosen: TableVersion = request.param
    monkeypatch.setattr(tables, "VERSION", chosen)
    return chosen
