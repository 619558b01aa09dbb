"""Where in a file the damage is."""

from __future__ import annotations

import os

import pytest

from tests.support.commit import commit_here


@pytest.fixture(scope="session")
def seed() -> str:
    """The commit, so that positions rotate, and a failure can be had again."""
    given = os.environ.get("LAKEHOUSE_DAMAGE_SEED")
    found = given or commit_here()
    print(f"LAKEHOUSE_DAMAGE_SEED={found}")
    return found
