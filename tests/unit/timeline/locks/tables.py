"""A table of nothing but its properties."""

from __future__ import annotations

from collections.abc import Mapping

from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore

PROVIDER = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
BESIDE_HUDI = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", "hoodie.write.lock.provider": PROVIDER}


def table_in(storage: Storage, properties: Mapping[str, str] | None = None) -> TableConfig:
    """`properties` as stored, over those that every table has."""
    named = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
    return ConfigStore(storage).create(TableConfig({**named, **(properties or {})}))
