"""Every option: its key, type, default, older names and one line of meaning.

An option's key is Hudi's where Hudi has one; the engine's own start with `lakehouse.`. Groups are frozen dataclasses read once
at the edge (`WriteOptions.read(raw)`); actions get groups, never a dict.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from lakehouse_engine.errors import UnknownOptionError
from lakehouse_engine.options import clustering, locks, read, services, write
from lakehouse_engine.options.base import Option
from lakehouse_engine.options.clustering import ClusteringOptions
from lakehouse_engine.options.locks import LOCK_PROVIDER, LockOptions
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
    "Option",
    "ServiceOptions",
    "WriteOptions",
    "check_known",
    "layered",
    "stored_defaults",
]

STORED_PREFIX = "lakehouse.default."
"""Before an option that a table keeps as the default of its writes. Under its own name Hudi would find it in `hoodie.properties` and
refuse every job that sets it differently ("Config conflict")."""


def stored_defaults(options: Mapping[str, Any]) -> dict[str, str]:
    """Write options as table properties."""
    return {STORED_PREFIX + key: str(value) for key, value in options.items()}


def _registry() -> dict[str, Option[Any]]:
    found = (value for module in (clustering, locks, read, services, write) for value in vars(module).values() if isinstance(value, Option))
    return {name: option for option in found for name in (option.key, *option.aliases)}


OPTIONS: dict[str, Option[Any]] = _registry()
"""Every key and older name that the engine acts on."""


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Options of several places, each stronger than those before it, under whichever of its names an option is given."""
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
    "hoodie.bulkinsert.sort.mode",
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
    # Of providers that wait by themselves, which the file lock does not.
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
"""Keys that only tune Hudi's own machinery: accepted, without effect here, and reported once by whoever passes them."""


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
"""Keys of Hudi for what a table is made with, and the argument of `create_table` that each means."""
_SAID_AS = {
    "record_key": "primaryKey in SQL, unique_key in dbt",
    "ordering_fields": "preCombineField in SQL",
    "partition_by": "PARTITIONED BY in SQL",
    "table_type": "type in SQL",
}


def check_known(raw: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> list[str]:
    """Refuse unknown keys, and values that do not parse; return keys that are Hudi's own tuning and have no effect here.

    Keys that turn off what this version has not are accepted. Raises `UnavailableError` for one that asks for it, `OptionError` for a
    value, whether or not the key is needed now, and `UnknownOptionError` naming the nearest known key.
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
