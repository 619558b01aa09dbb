"""What every test of tables with a metadata table asks at the end."""

from __future__ import annotations

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.metadata_table.building.build import PARTITIONS
from lakehouse_engine.metadata_table.partitions import PARTITION_STATS
from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.verify.metadata_table import MetadataFindingKind, check_metadata_table
from lakehouse_engine.view.table_state import TableState


def buildable(state: TableState) -> list[str]:
    """Every partition that is built without a definition of one's own."""
    has_stats = bool(state.config.partition_fields) and state.config.version is not TableVersion.SIX
    return [name for name in PARTITIONS if has_stats or name != PARTITION_STATS]


def check_metadata(storage: Storage, *, may_be_damaged: bool = False) -> bool:
    """Whether there is a metadata table. Nothing that it says is wrong, and none of it is left if it is gone.

    `may_be_damaged`: a file that cannot be read says nothing, and is no error here.
    """
    state = TableState.load(storage)
    if not state.config.metadata_partitions:
        assert not storage.list(METADATA_TABLE), "files are left of a metadata table that is gone"
        return False
    try:
        findings = check_metadata_table(state).findings
    except LakehouseError:
        if not may_be_damaged:
            raise
        return True
    wrong = [one for one in findings if not (may_be_damaged and one.kind is MetadataFindingKind.UNREADABLE)]
    assert not wrong, wrong
    return True
