"""Tests of this folder run by both routes of a write."""

from tests.support.routes import route

__all__ = ["route"]
