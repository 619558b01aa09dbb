"""Changes to a table that write no rows: schema, name, properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import pyarrow as pa

from lakehouse_engine.commit.transaction import begin
from lakehouse_engine.errors import OptionError
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.format.avro.arrow_avro import table_avro_schema
from lakehouse_engine.index.consistent import refuse_changing_buckets
from lakehouse_engine.index.hbase.entries import has_hbase_index
from lakehouse_engine.index.registry import check_index, keeps_buckets
from lakehouse_engine.model.commit_metadata import SCHEMA_KEY, HoodieCommitMetadata
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.model.instant import Action
from lakehouse_engine.model.table_config import DELETES_KEY, MATERIALIZED_KEY, UNFINISHED_KEY, TableConfig
from lakehouse_engine.model.write_stats import WriteOperationType
from lakehouse_engine.options import (
    BUCKET_ENGINE,
    BUCKET_HASH_FIELD,
    INDEX_TYPE,
    NUM_BUCKETS,
    OPTIONS,
    STORED_PREFIX,
    ServiceOptions,
    WriteOptions,
    check_known,
    layered,
)
from lakehouse_engine.record.merging.payloads import payload_of
from lakehouse_engine.record.merging.soft_deletes import check_soft_deletes
from lakehouse_engine.record.nested import Path, placed
from lakehouse_engine.record.schema import check_reserved, reconcile
from lakehouse_engine.record.types import canonical_schema
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks.settings import check_provider_fits, lock_options
from lakehouse_engine.write.context import check_payload


def evolve_schema(
    storage: Storage, changes: pa.Schema, *, places: Sequence[tuple[Path, str | None]] = (), lock_timeout_ms: int
) -> str | None:
    """Add columns, widen types and move columns: one commit without files; returns its instant, or None if nothing changes.

    `changes` has new columns, and changed ones with their new types; `places` maps columns to the one before them (None: first). Files are
    read by column names, so they may have another order. Raises `SchemaIncompatibleError` for a change with which existing files could not
    be read.
    """
    with begin(storage, lock_timeout_ms=lock_timeout_ms, alone=True) as transaction:
        config = transaction.state.config
        incoming = canonical_schema(changes)
        check_reserved(incoming)
        before = table_schema(transaction.state)
        after = reduce(lambda schema, one: placed(schema, *one), places, reconcile(before, incoming, evolve=True))
        if after == before:
            return None
        schema = table_avro_schema(config.name, after, allow_timestamp_ntz=True)
        transaction.start(Action.COMMIT)
        transaction.inflight(HoodieCommitMetadata(operation_type=WriteOperationType.ALTER_SCHEMA))
        transaction.complete(HoodieCommitMetadata(operation_type=WriteOperationType.ALTER_SCHEMA, extra_metadata={SCHEMA_KEY: schema}))
        return transaction.instant_time


def set_properties(storage: Storage, changes: Mapping[str, str | None], *, lock_timeout_ms: int) -> TableConfig:
    """Set (or with None remove) options that the table stores as defaults of its writes, under any of their names.

    Raises `OptionError` for other keys, and if the next write would be refused because of them.
    """
    check_known(changes)
    fixed = [key for key in changes if key not in OPTIONS]
    if fixed:
        raise OptionError(f"{fixed[0]!r} has no effect as a property of a table; give it with the write", table=storage.root)
    store = ConfigStore(storage)
    config = store.read()
    _check_index(config, changes)
    _check_defaults(config, changes)
    others = [name for key in changes for name in (OPTIONS[key].key, *OPTIONS[key].aliases)]
    stored = {STORED_PREFIX + key: value for key, value in {**dict.fromkeys(others), **changes}.items()}
    after = config.with_properties(stored)
    if BUCKET_ENGINE.key in changes:
        refuse_changing_buckets(storage, after, WriteOptions.read({}), may_be_stored=False)
    asked = lock_options(after)
    check_provider_fits(storage, asked)
    with TableLock(storage, lock_timeout_ms, instead=asked):
        return store.update(stored)


def _check_index(config: TableConfig, changes: Mapping[str, str | None]) -> None:
    """Refuse another index: keys are in the buckets of their writing, and a table without an index type counts as another writer's."""
    kept = config.prefixed(STORED_PREFIX)
    given = {key: value for key, value in changes.items() if value is not None}
    if given.get(INDEX_TYPE.key, "").strip().upper() == "HBASE" and not has_hbase_index(config):
        raise OptionError(
            f"{INDEX_TYPE.key}=HBASE: rows that are stored have no entries yet; `lakehouse index rebuild {config.name}` puts them, and"
            " makes it the table's index",
            table=config.name,
        )
    changed = [key for key in (INDEX_TYPE.key, NUM_BUCKETS.key, BUCKET_HASH_FIELD.key) if key in changes and changes[key] != kept.get(key)]
    is_gone = any(changes[key] is None for key in changed)
    if changed and (is_gone or not keeps_buckets(config, WriteOptions.read({**kept, **given}))):
        raise OptionError(
            f"{changed[0]} is {kept.get(changed[0], 'not set')} for the life of the table, and cannot become"
            f" {changes[changed[0]] or 'nothing'}: stored keys are where it put them; write the rows to a new table",
            table=config.name,
        )


def _check_defaults(config: TableConfig, changes: Mapping[str, str | None]) -> None:
    """Every later write has them, even one that says nothing about them."""
    kept = {key: value for key, value in layered(config.prefixed(STORED_PREFIX), changes).items() if value is not None}
    options = WriteOptions.read(kept)
    ServiceOptions.read(kept)
    check_index(config, options)
    check_payload(config, options)
    payload = payload_of(config, options.payload_class)
    payload.check_marker(options.delete_marker)
    payload.delete_marks({**config.properties, **options.delete_marker})


def set_constraints(storage: Storage, change: Callable[[Constraints], Constraints], *, lock_timeout_ms: int) -> TableConfig:
    """Change column constraints for later writes. Stored rows are not checked."""
    with TableLock(storage, lock_timeout_ms):
        store = ConfigStore(storage)
        return store.update(change(store.read().constraints).properties())


def set_soft_deletes(storage: Storage, *, lock_timeout_ms: int) -> TableConfig:
    """Keep deleted rows from now on; the next write adds the column. Raises as `check_soft_deletes`."""
    with TableLock(storage, lock_timeout_ms):
        store = ConfigStore(storage)
        config = store.read()
        check_soft_deletes(config, payload_of(config))
        return store.update({DELETES_KEY: "soft"})


def set_query(storage: Storage, query: str | None, *, lock_timeout_ms: int) -> TableConfig:
    """Set the query of a materialized view; None turns it into a plain table."""
    with TableLock(storage, lock_timeout_ms):
        return ConfigStore(storage).update({MATERIALIZED_KEY: query})


def set_unfinished(storage: Storage, change: Callable[[str | None], str | None], *, lock_timeout_ms: int) -> TableConfig:
    """Set the mark of a build in several commits that is not finished; None removes it. `change` gets the current mark."""
    with TableLock(storage, lock_timeout_ms):
        store = ConfigStore(storage)
        config = store.read()
        who = change(config.unfinished_build)
        return config if who == config.unfinished_build else store.update({UNFINISHED_KEY: who})
