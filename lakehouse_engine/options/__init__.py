"""All options: key, type, default, older names and one line of meaning.

A key is Hudi's if Hudi has one; the engine's own start with `lakehouse.`. Groups are frozen dataclasses, read once at the edge
(`WriteOptions.read(raw)`); actions get groups, never a dict.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from lakehouse_engine.errors import UnknownOptionError
from lakehouse_engine.options import clustering, hbase, index, locks, metadata_table, read, services, write
from lakehouse_engine.options.base import Option
from lakehouse_engine.options.clustering import ClusteringOptions
from lakehouse_engine.options.locks import LOCK_PROVIDER, LockOptions
from lakehouse_engine.options.metadata_table import MetadataTableOptions
from lakehouse_engine.options.services import ArchiveOptions, CleanOptions, CompactionOptions, ServiceOptions
from lakehouse_engine.options.unavailable import asks_for_nothing
from lakehouse_engine.options.write import (
    BUCKET_ENGINE,
    BUCKET_HASH_FIELD,
    CONFLICT_RETRIES,
    DELETE_FIELD,
    DELETE_MARKER,
    INDEX_TYPE,
    KEY_GENERATOR_KEYS,
    LOCK_TIMEOUT_MS,
    LOGICAL_TIMESTAMP,
    MERGE_MODE,
    NUM_BUCKETS,
    PAYLOAD_CLASS,
    PAYLOADS_OF_MODES,
    SHIP_ENGINE,
    TABLE_VERSION,
    TASK_RUNNER,
    TASK_THREADS,
    WriteOptions,
)

__all__ = [
    "BUCKET_ENGINE",
    "BUCKET_HASH_FIELD",
    "CONFLICT_RETRIES",
    "DELETE_FIELD",
    "DELETE_MARKER",
    "INDEX_TYPE",
    "KEY_GENERATOR_KEYS",
    "LOCK_PROVIDER",
    "LOCK_TIMEOUT_MS",
    "LOGICAL_TIMESTAMP",
    "MERGE_MODE",
    "NUM_BUCKETS",
    "OPTIONS",
    "PAYLOADS_OF_MODES",
    "PAYLOAD_CLASS",
    "SHIP_ENGINE",
    "STORED_PREFIX",
    "TABLE_KEYS",
    "TABLE_VERSION",
    "TASK_RUNNER",
    "TASK_THREADS",
    "TUNING_PREFIXES",
    "ArchiveOptions",
    "CleanOptions",
    "ClusteringOptions",
    "CompactionOptions",
    "LockOptions",
    "MetadataTableOptions",
    "Option",
    "ServiceOptions",
    "WriteOptions",
    "check_known",
    "layered",
    "stored_defaults",
]

STORED_PREFIX = "lakehouse.default."
"""Prefix of options that a table stores as defaults of its writes. Under their own names Hudi would find them in `hoodie.properties` and
refuse every job that sets them differently ("Config conflict").
"""


def stored_defaults(options: Mapping[str, Any]) -> dict[str, str]:
    """Write options as table properties."""
    return {STORED_PREFIX + key: str(value) for key, value in options.items()}


def _registry() -> dict[str, Option[Any]]:
    modules = (clustering, hbase, index, locks, metadata_table, read, services, write)
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Option))
    return {name: option for option in found for name in (option.key, *option.aliases)}


OPTIONS: dict[str, Option[Any]] = _registry()
"""Every key and older name that has an effect here."""


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Options from several places; later ones win, whichever of its names an option has."""
    found: dict[str, Any] = {}
    for layer in layers:
        keys = {name: OPTIONS[name].key if name in OPTIONS else name for name in layer}
        found |= {key: layer[name] for name, key in keys.items() if name != key}
        found |= {name: layer[name] for name, key in keys.items() if name == key}
    return found


TUNING_PREFIXES = (
    "hoodie.upsert.shuffle.",
    "hoodie.insert.shuffle.",
    "hoodie.bulkinsert.shuffle.",
    "hoodie.delete.shuffle.",
    "hoodie.bloom.index.parallelism",
    "hoodie.simple.index.parallelism",
    "hoodie.finalize.write.parallelism",
    "hoodie.markers.",
    "hoodie.clustering.max.parallelism",
    "hoodie.clustering.group.read.parallelism",
    "hoodie.layout.optimize.curve.build.method",
    "hoodie.embed.timeline.",
    "hoodie.metrics.",
    "hoodie.memory.",
    # options of lock providers that wait by themselves, unlike the file lock
    "hoodie.write.lock.num_retries",
    "hoodie.write.lock.wait_time_ms_between_retry",
    "hoodie.write.lock.max_wait_time_ms_between_retry",
    "hoodie.write.lock.heartbeat_interval_ms",
    "hoodie.copyonwrite.",
    "hoodie.parquet.block.size",
    "hoodie.parquet.page.size",
    "hoodie.parquet.compression.ratio",
    "hoodie.parquet.dictionary.enabled",
)
"""Keys that only tune Hudi's own machinery: accepted, without effect here, and reported once by the caller."""


TABLE_KEYS = {
    "hoodie.datasource.write.recordkey.field": "record_key",
    "hoodie.table.recordkey.fields": "record_key",
    "hoodie.datasource.write.precombine.field": "ordering_fields",
    "hoodie.table.precombine.field": "ordering_fields",
    "hoodie.table.ordering.fields": "ordering_fields",
    "hoodie.table.partition.fields": "partition_by",
    "hoodie.datasource.write.table.type": "table_type",
    "hoodie.table.type": "table_type",
}
"""Hudi's keys for table creation, and the argument of `create_table` that each means."""
_SAID_AS = {
    "record_key": "primaryKey in SQL, unique_key in dbt",
    "ordering_fields": "preCombineField in SQL",
    "partition_by": "PARTITIONED BY in SQL",
    "table_type": "type in SQL",
}


def check_known(raw: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> list[str]:
    """Refuse unknown keys and invalid values; returns keys of Hudi's own tuning, which have no effect here.

    Accepts keys that turn off what this version lacks. Raises `UnavailableError` for a key that asks for it, `OptionError` for a value,
    needed or not, and `UnknownOptionError` with the nearest known key.
    """
    ignored = []
    for key in raw:
        if key in OPTIONS:
            OPTIONS[key].read({key: raw[key]})
            continue
        if key in also or key.startswith(KEY_GENERATOR_KEYS):
            continue
        if key.startswith(TUNING_PREFIXES):
            ignored.append(key)
            continue
        if asks_for_nothing(key, raw[key]):
            continue
        if key in TABLE_KEYS:
            named = TABLE_KEYS[key]
            raise UnknownOptionError(f"{key!r} is what a table is made with, not an option: give it as {named} ({_SAID_AS[named]})")
        near = difflib.get_close_matches(key, [*OPTIONS, *also], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownOptionError(f"the engine does not act on the option {key!r}{hint}")
    return ignored
