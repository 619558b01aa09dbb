"""Whether a table is whole: whatever a read can meet is looked at. Changes nothing."""

from lakehouse_engine.actions.verify.report import Finding, FindingKind, Progress, VerifyReport
from lakehouse_engine.actions.verify.table import verify

__all__ = ["Finding", "FindingKind", "Progress", "VerifyReport", "verify"]
