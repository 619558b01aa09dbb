"""`tests/object_store/test_conditions.py`, over the other servers."""

from __future__ import annotations

from tests.object_store import test_conditions
from tests.object_store.others.again import those_of

globals().update(those_of(test_conditions))
