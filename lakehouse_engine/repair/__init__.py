"""What is not in order on a table, and who sees to it (docs/adr/0019)."""

from lakehouse_engine.repair.disorder import Disorder, DisorderKind, RepairReport
from lakehouse_engine.repair.service import repair

__all__ = ["Disorder", "DisorderKind", "RepairReport", "repair"]
