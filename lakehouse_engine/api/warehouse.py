"""A warehouse: its relations and functions, and hidden folders for work in progress."""

from __future__ import annotations

from lakehouse_engine.catalog.atomic_create import make_filled
from lakehouse_engine.catalog.catalog import Catalog, RelationKind
from lakehouse_engine.catalog.functions import Functions, Language, Parameter, StoredFunction
from lakehouse_engine.commit.staging import StagingArea
from lakehouse_engine.commit.staging import remove_dead_stages as remove_dead
from lakehouse_engine.lakehouse import Lakehouse
from lakehouse_engine.model.write_stats import WriteResult
from lakehouse_engine.repair import RepairReport
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.storage.locations import storage_for
from lakehouse_engine.storage.usable import check_usable

__all__ = [
    "Catalog",
    "Functions",
    "Lakehouse",
    "Language",
    "LocalStorage",
    "Parameter",
    "RelationKind",
    "RepairReport",
    "StagingArea",
    "Storage",
    "StoredFunction",
    "WriteResult",
    "check_usable",
    "make_filled",
    "remove_dead_stages",
    "staging_area",
    "storage_for",
]


def staging_area(storage: Storage, home: str) -> StagingArea:
    """A folder below `home` for this process. Removes those of dead processes."""
    remove_dead_stages(storage, home)
    return StagingArea(storage, home)


def remove_dead_stages(storage: Storage, home: str) -> None:
    """Remove what dead processes left below `home`."""
    remove_dead(storage, storage.list(home), home)
