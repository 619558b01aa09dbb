"""What an action did, as its completed file says it."""

from __future__ import annotations

from typing import TypeAlias

from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.plans import HoodieCleanMetadata, HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata

Outcome: TypeAlias = (
    HoodieCommitMetadata | HoodieCleanMetadata | HoodieRollbackMetadata | HoodieRestoreMetadata | HoodieSavepointMetadata
)
"""Outcome of an action. A write, compaction, log compaction or clustering has commit metadata."""
