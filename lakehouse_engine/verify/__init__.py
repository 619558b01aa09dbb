"""Checks whether a table is whole: everything that a read can meet. Changes nothing."""

from lakehouse_engine.verify.report import DATA, Finding, FindingKind, Progress, VerifyReport
from lakehouse_engine.verify.table import verify

__all__ = ["DATA", "Finding", "FindingKind", "Progress", "VerifyReport", "verify"]
