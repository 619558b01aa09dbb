"""What Hudi has and this version has not, by the names that its users type: each is refused with these words, and never passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.errors import UnavailableError

ASYNC_CLUSTERING = (
    "no process of this engine clusters in the background: hoodie.clustering.schedule.inline plans clusterings for another process to run"
    " (`lakehouse cluster T --op run`), and hoodie.clustering.inline runs them behind a write"
)
UPGRADE = (
    "a table's version cannot be changed in this version: a new table can be made in another one (hoodie.write.table.version, in dbt the"
    " config table_version), and Hudi 1.1 and later can upgrade a copy"
)
DOWNGRADE = (
    "a table's version cannot be changed in this version: a new table can be made in another one (hoodie.write.table.version, in dbt the"
    " config table_version), and Hudi 1.1 and later can downgrade a copy"
)
RECORD_INDEX = "the record-level index is not available in this version; use SIMPLE, BLOOM, their GLOBAL_ forms or BUCKET"
INDEXES = (
    "indexes of the metadata table are not available in this version; how rows are found by key is an option of the table"
    " (hoodie.index.type; in dbt the config index), and filters skip files by the statistics in their footers"
)
METADATA_TABLE = "the metadata table is not available in this version: files are found by listing; one that Hudi made is dropped by a write"
CHANGE_DATA = "change data capture is not available in this version; an incremental query has the newest state of the rows that changed"

_FALSE = ("false",)
_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("hoodie.write.auto.upgrade", _FALSE, UPGRADE),
    ("hoodie.metadata.enable", _FALSE, METADATA_TABLE),
    ("hoodie.metadata.record.index.enable", _FALSE, RECORD_INDEX),
    ("hoodie.metadata.global.record.level.index.enable", _FALSE, RECORD_INDEX),
    ("hoodie.metadata.record.level.index.enable", _FALSE, RECORD_INDEX),
    ("hoodie.clustering.async.enabled", _FALSE, ASYNC_CLUSTERING),
    ("hoodie.table.cdc.enabled", _FALSE, CHANGE_DATA),
)
"""A key of Hudi's, the values in lower case that ask for what is done anyway, and why others are refused."""
_FAMILIES = (("hoodie.metadata.", METADATA_TABLE), ("hoodie.table.cdc.", CHANGE_DATA))
"""All that begins so is about something that is not there."""
KEYS = {name: (values[0], why) for name, values, why in _KEYS}
"""For documentation: each key, the value that is accepted, and why others are refused."""
RECORD_INDEXES = ("RECORD_INDEX", "GLOBAL_RECORD_LEVEL_INDEX", "RECORD_LEVEL_INDEX", "RECORD_LEVEL")
"""Hudi's names of the index, and dbt's, as values of `hoodie.index.type`."""


def asks_for_nothing(key: str, value: Any) -> bool:
    """Whether a key of Hudi's turns off what is not there, or asks for the one thing that there is. Raises `UnavailableError` where it
    asks for what this version has not; False for a key that is about nothing of the kind.
    """
    known = {name: (values, why) for name, values, why in _KEYS}
    if key in known:
        values, why = known[key]
        if str(value).strip().lower() in values:
            return True
        raise UnavailableError(f"{key}={value!r}: {why}")
    for prefix, why in _FAMILIES:
        if key.startswith(prefix):
            raise UnavailableError(f"{key}={value!r}: {why}")
    return False


def stored_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The properties without those that ask for nothing: in `hoodie.properties` they would speak to other writers."""
    return {key: value for key, value in properties.items() if not asks_for_nothing(key, value)}
