"""Hudi features that this version lacks, by the names that users type: refused with a reason, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.errors import UnavailableError

ASYNC_CLUSTERING = (
    "no process of this engine clusters in the background: hoodie.clustering.schedule.inline plans clusterings for another process to run"
    " (`lakehouse cluster T --op run`), and hoodie.clustering.inline runs them behind a write"
)
AUTO_UPGRADE = (
    "a write does not change a table's version, as older readers would not open the table any more; `upgrade` does (docs/table-versions.md)"
)
PARTITIONED_RECORD_INDEX = (
    "a record index for each partition is kept where Hudi made one, and not built in this version; the global one is"
    " (hoodie.metadata.global.record.level.index.enable, hoodie.index.type=RECORD_INDEX)"
)
REFRESHED_INDEXES = "an index follows every write of the table; `lakehouse metadata rebuild` builds it again from the data files"
METADATA_TABLE = (
    "this option of the metadata table is not available in this version; docs/options.md has those that are"
)
METADATA_STATEMENTS = (
    "hoodie.metadata.enable says whether a table has a metadata table, CREATE INDEX and DROP INDEX change its indexes, and `lakehouse"
    " metadata check`, `rebuild` and `drop` see to it"
)
HBASE_OPTIONS = (
    "the HBASE index asks HBase's Thrift server (lakehouse.index.hbase.thrift.host and .port) and has no such option; docs/options.md has"
    " those that there are"
)
HBASE_ROLLBACK = (
    "a write that fails takes its entries back itself, and after a rollback or restore this engine puts the entries of what came back"
    " again; it does not go by the time stamps of cells"
)
CHANGE_DATA = "change data capture is not available in this version; an incremental query has the newest state of the rows that changed"

_FALSE = ("false",)
_KEYS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("hoodie.write.auto.upgrade", _FALSE, AUTO_UPGRADE),
    ("hoodie.metadata.record.level.index.enable", _FALSE, PARTITIONED_RECORD_INDEX),
    ("hoodie.clustering.async.enabled", _FALSE, ASYNC_CLUSTERING),
    ("hoodie.table.cdc.enabled", _FALSE, CHANGE_DATA),
    ("hoodie.index.hbase.rollback.sync", _FALSE, HBASE_ROLLBACK),
)
"""A key of Hudi's, the lower-case values that ask for the existing behaviour, and why others are refused."""
_HBASE = ("hoodie.index.hbase.", "hoodie.hbase.index.")
_FAMILIES = (("hoodie.metadata.", METADATA_TABLE), ("hoodie.table.cdc.", CHANGE_DATA), *((key, HBASE_OPTIONS) for key in _HBASE))
"""Prefixes of keys about missing features."""
KEYS = {name: (values[0], why) for name, values, why in _KEYS}
"""For documentation: each key, the accepted value, and why others are refused."""


def asks_for_nothing(key: str, value: Any) -> bool:
    """True if a key turns off a missing feature, or asks for the only available behaviour. Raises `UnavailableError` if it asks for a
    missing one; False for other keys.
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
    """The properties without keys that ask for nothing: in `hoodie.properties` other writers would read them."""
    return {key: value for key, value in properties.items() if not asks_for_nothing(key, value)}
