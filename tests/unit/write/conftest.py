"""Tests of this folder run by both routes of a write, and by copying or not."""

from tests.support.copying import copied, copies
from tests.support.routes import route

__all__ = ["copied", "copies", "route"]
