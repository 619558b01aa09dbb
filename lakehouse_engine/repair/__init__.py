"""Finds what is out of order on a table, and repairs it (docs/adr/0019)."""

from lakehouse_engine.repair.disorder import UNSOLVED, Disorder, DisorderKind, RepairReport
from lakehouse_engine.repair.service import repair

__all__ = ["UNSOLVED", "Disorder", "DisorderKind", "RepairReport", "repair"]
