"""The tests of object stores, over servers that speak as Azure and Google do: where they ask for `s3_store` they get one of these."""

from __future__ import annotations

import pytest

from tests.object_store.dbt_store import Store
from tests.object_store.emulators import azure_store, google_store

__all__ = ["azure_store", "google_store"]


@pytest.fixture(scope="session", params=["azure", "google"])
def s3_store(request: pytest.FixtureRequest) -> Store:
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found
