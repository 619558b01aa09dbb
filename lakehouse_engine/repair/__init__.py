"""What is not in order on a table, and who sees to it (docs/adr/0019)."""

from lakehouse_engine.repair.disorder import UNSOLVED, Disorder, DisorderKind, RepairReport
from lakehouse_engine.repair.service import repair

__all__ = ["UNSOLVED", "Disorder", "DisorderKind", "RepairReport", "repair"]
