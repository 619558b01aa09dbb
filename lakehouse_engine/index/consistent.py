"""Refuses Hudi tables without a single fixed number of buckets.

The bucket engine CONSISTENT_HASHING splits and merges buckets (`HoodieConsistentHashingMetadata`); since Hudi 1.1 partitions can have their
own number (`PartitionBucketIndexHashingConfig`). Neither shows in the table's properties, only in files below `.hoodie/.bucket_index`. Hudi
does not find a key outside its bucket's group, and stores it a second time.
"""

from __future__ import annotations

from lakehouse_engine.errors import UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import BUCKET_ENGINE, STORED_PREFIX, WriteOptions
from lakehouse_engine.storage.base import Storage

BUCKETS = ".hoodie/.bucket_index"
_KINDS = {".hashing_meta": "consistent hashing buckets", ".hashing_config": "a number of buckets for each partition"}
_CONSISTENT = "CONSISTENT_HASHING"


def refuse_changing_buckets(storage: Storage, config: TableConfig, options: WriteOptions, *, may_be_stored: bool = True) -> None:
    """Raise `UnsupportedTableError` for a write to a table with such buckets, or one that asks for them. `may_be_stored`: False if their
    folder is known to be empty.
    """
    found = _asked(config, options) or (_stored(storage) if may_be_stored else None)
    if found is not None:
        raise UnsupportedTableError(
            f"{found}: rows written here would not be where Hudi looks for their keys. Read the table here and write it with Hudi, or copy"
            f" its rows into a new table that has {BUCKET_ENGINE.key}=SIMPLE, or another index",
            table=config.name,
        )


def _asked(config: TableConfig, options: WriteOptions) -> str | None:
    kept = {**config.properties, **config.prefixed(STORED_PREFIX)}.get(BUCKET_ENGINE.key)
    asked = _CONSISTENT in (options.bucket_engine, BUCKET_ENGINE.read({BUCKET_ENGINE.key: kept}))
    return f"{BUCKET_ENGINE.key}={_CONSISTENT} is not supported" if asked else None


def _stored(storage: Storage) -> str | None:
    for entry in storage.walk(BUCKETS):
        for suffix, kind in _KINDS.items():
            if entry.name.endswith(suffix):
                return f"the table has {kind} ({entry.path})"
    return None
