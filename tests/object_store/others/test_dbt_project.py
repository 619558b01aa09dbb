"""`tests/object_store/test_dbt_project.py`, over the other servers."""

from __future__ import annotations

from tests.object_store import test_dbt_project
from tests.object_store.others.again import those_of

globals().update(those_of(test_dbt_project))
