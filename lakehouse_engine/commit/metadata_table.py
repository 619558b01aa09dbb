"""Hudi's metadata table (`.hoodie/metadata`): dropped by a write, never left stale.

Java readers trust it over listing while `hoodie.table.metadata.partitions` names it, so they would not see a commit that it lacks. It is
dropped like a Hudi writer with `hoodie.metadata.enable=false` does: first the property, then the files. A Hudi writer that wants it
rebuilds it by listing. The index definitions in `.hoodie/.index_defs` belong to the user and stay: Hudi rebuilds secondary and expression
indexes from them.
"""

from __future__ import annotations

import logging

from lakehouse_engine.metadata_table.table import METADATA_TABLE
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_PROPERTIES = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")

_WARNED: set[str] = set()
"""Roots of tables for which this process has warned."""


def drop_metadata_table(state: TableState) -> TableState:
    """The state after dropping; the same state if there is no metadata table."""
    named = [key for key in _PROPERTIES if state.config.properties.get(key)]
    present = state.may_have_folder(METADATA_TABLE) and _is_there(state.storage)
    if not named and not present:
        return state
    _warn(state.storage, state.config.name)
    if named:
        ConfigStore(state.storage).update(dict.fromkeys(named))
    if present:
        state.storage.delete_tree(METADATA_TABLE)
    return state.refresh()


def _warn(storage: Storage, name: str) -> None:
    """Warn about the cost of the drop, once per table and process, even if Hudi rebuilds it meanwhile."""
    if storage.root in _WARNED:
        return
    _WARNED.add(storage.root)
    logger.warning(
        "the metadata table of %s (%s) is dropped, for this engine keeps none and a stale one would hide new files: from now on readers"
        " find files by listing directories, its record index and column statistics are gone, and Hudi builds it anew from all files of the"
        " table when it writes next",
        name,
        storage.root,
    )


def _is_there(storage: Storage) -> bool:
    return bool(storage.list(METADATA_TABLE))
