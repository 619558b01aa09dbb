"""`tests/object_store/test_contract.py`, over the other servers."""

from __future__ import annotations

from tests.object_store import test_contract
from tests.object_store.others.again import those_of

globals().update(those_of(test_contract))
