"""Checks that a table's metadata table agrees with its files, footers and rows. Changes nothing."""

from lakehouse_engine.verify.metadata_table.check import check_metadata_table
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind, MetadataReport

__all__ = ["MetadataFinding", "MetadataFindingKind", "MetadataReport", "check_metadata_table"]
