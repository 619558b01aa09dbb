"""Archiving: moves unneeded instants from the active timeline to the archived one, in Hudi's format."""

from lakehouse_engine.services.archive.passed import archive_passed
from lakehouse_engine.services.archive.service import archive, archive_is_due

__all__ = ["archive", "archive_is_due", "archive_passed"]
