"""Hudi's metadata table (`.hoodie/metadata`): dropped when we write, never left stale.

Java readers trust it over listing while `hoodie.table.metadata.partitions` names it, so a commit that it does not know of would be
invisible to them. It is dropped the way a Hudi writer with `hoodie.metadata.enable=false` does: first the property, then the files.
A Hudi writer that wants it builds it again by listing.
"""

from __future__ import annotations

import logging

from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

METADATA_TABLE = ".hoodie/metadata"
_PROPERTIES = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def drop_metadata_table(state: TableState) -> TableState:
    """The state after dropping; the same one where there is no metadata table."""
    named = [key for key in _PROPERTIES if state.config.properties.get(key)]
    present = state.may_have_folder(METADATA_TABLE) and _is_there(state.storage)
    if not named and not present:
        return state
    logger.info("dropping the metadata table of %s: this engine keeps none, and a stale one would hide new files", state.config.name)
    if named:
        ConfigStore(state.storage).update(dict.fromkeys(named))
    if present:
        state.storage.delete_tree(METADATA_TABLE)
    return state.refresh()


def _is_there(storage: Storage) -> bool:
    return bool(storage.list(METADATA_TABLE))
