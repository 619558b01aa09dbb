"""`tests/object_store/test_lost_answers.py`, over the other servers."""

from __future__ import annotations

from tests.object_store import test_lost_answers
from tests.object_store.others.again import those_of

globals().update(those_of(test_lost_answers))
