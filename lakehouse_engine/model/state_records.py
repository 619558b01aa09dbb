"""Maps each state file of an instant to its record type; those of writes are commit metadata, and not here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lakehouse_engine.model.instant import Action, State
from lakehouse_engine.model.plans import (
    HoodieCleanerPlan,
    HoodieCleanMetadata,
    HoodieCompactionPlan,
    HoodieRequestedReplaceMetadata,
    HoodieRestoreMetadata,
    HoodieRestorePlan,
    HoodieRollbackMetadata,
    HoodieRollbackPlan,
)
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata

STATE_RECORDS: Mapping[tuple[Action, State], type[Any]] = MappingProxyType(
    {
        (Action.SAVEPOINT, State.COMPLETED): HoodieSavepointMetadata,
        (Action.CLEAN, State.REQUESTED): HoodieCleanerPlan,
        (Action.CLEAN, State.INFLIGHT): HoodieCleanerPlan,
        (Action.CLEAN, State.COMPLETED): HoodieCleanMetadata,
        (Action.ROLLBACK, State.REQUESTED): HoodieRollbackPlan,
        (Action.ROLLBACK, State.COMPLETED): HoodieRollbackMetadata,
        (Action.RESTORE, State.REQUESTED): HoodieRestorePlan,
        (Action.RESTORE, State.INFLIGHT): HoodieRestorePlan,
        (Action.RESTORE, State.COMPLETED): HoodieRestoreMetadata,
        (Action.COMPACTION, State.REQUESTED): HoodieCompactionPlan,
        (Action.LOG_COMPACTION, State.REQUESTED): HoodieCompactionPlan,
        (Action.REPLACE_COMMIT, State.REQUESTED): HoodieRequestedReplaceMetadata,
        (Action.CLUSTERING, State.REQUESTED): HoodieRequestedReplaceMetadata,
    }
)
"""Hudi leaves inflight files of cleans and restores empty, and requested files of replace commits other than clusterings."""
