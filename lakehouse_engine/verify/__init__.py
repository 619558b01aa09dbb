"""Whether a table is whole: whatever a read can meet is looked at. Changes nothing."""

from lakehouse_engine.verify.report import DATA, Finding, FindingKind, Progress, VerifyReport
from lakehouse_engine.verify.table import verify

__all__ = ["DATA", "Finding", "FindingKind", "Progress", "VerifyReport", "verify"]
