"""All indexes, a table's index, and whether a write may use the one that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.format.file_names import bucket_of, has_bucket
from lakehouse_engine.index.base import Index
from lakehouse_engine.index.bucket import BucketIndex, BucketLayout
from lakehouse_engine.index.choice import index_type, is_global_type, is_ours, stored_index_type
from lakehouse_engine.index.consistent import BUCKETS, refuse_changing_buckets
from lakehouse_engine.index.hbase.index import HBaseIndex, check_own_index, check_own_options, hbase_index
from lakehouse_engine.index.record_level import RecordLevelIndex
from lakehouse_engine.index.simple import KeyColumnIndex
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import BUCKET_HASH_FIELD, INDEX_TYPE, NUM_BUCKETS, STORED_PREFIX, WriteOptions
from lakehouse_engine.options.unavailable import PARTITIONED_RECORD_INDEX
from lakehouse_engine.view.table_state import TableState

INDEXES: Mapping[str, Callable[[TableConfig, WriteOptions], Index]] = {
    "SIMPLE": lambda config, options: KeyColumnIndex(is_global=False, use_bloom=False),
    "GLOBAL_SIMPLE": lambda config, options: KeyColumnIndex(is_global=True, use_bloom=False),
    "BLOOM": lambda config, options: KeyColumnIndex(is_global=False, use_bloom=True),
    "GLOBAL_BLOOM": lambda config, options: KeyColumnIndex(is_global=True, use_bloom=True),
    "BUCKET": lambda config, options: BucketIndex(BucketLayout.of(config, options)),
    "HBASE": lambda config, options: hbase_index(config, options),
    "GLOBAL_RECORD_LEVEL_INDEX": lambda config, options: _record_level(config, is_global=True),
    "RECORD_LEVEL_INDEX": lambda config, options: _record_level(config, is_global=False),
}

_CHECKED_FILES = 16


def load_index(state: TableState, options: WriteOptions) -> Index:
    """Index of a write. AUTO is the table's index; other writers' tables follow Hudi's rule that a key is unique in its partition.

    Raises `OptionError` for an unknown type, for one that would put keys into other buckets than the table's, or that looks in one
    partition where the table's index looks in all, `UnsupportedTableError` for a table whose buckets change (see `consistent`), and as
    `check_possible`, `check_own_index` and `check_own_options` for an HBASE index.
    """
    config = state.config
    refuse_changing_buckets(state.storage, config, options, may_be_stored=state.may_have_folder(BUCKETS))
    stored, chosen = stored_index_type(config), index_type(config, options)
    if chosen not in INDEXES:
        raise OptionError(f"{INDEX_TYPE.key}={chosen!r} is not one of {', '.join(INDEXES)}", table=config.name)
    index = INDEXES[chosen](config, options)
    if isinstance(index, HBaseIndex):
        check_own_index(config, options)
    check_own_options(config, options)
    if is_ours(config):
        reason = _other_buckets(config, chosen, stored, options) or _narrower(config, chosen, stored)
        if reason is not None:
            raise OptionError(reason, table=config.name)
    elif isinstance(index, BucketIndex):
        _check_keys(state, index.layout)
    elif options.index_type == "AUTO":
        _check_unbucketed(state)
    return index.of(state) if isinstance(index, RecordLevelIndex | KeyColumnIndex | HBaseIndex) else index


def _record_level(config: TableConfig, *, is_global: bool) -> RecordLevelIndex:
    if not config.record_key_fields:
        message = f"{INDEX_TYPE.key}: a record index needs a table with record key fields; this one has generated keys"
        raise OptionError(message, table=config.name)
    return RecordLevelIndex(is_global)


def check_index(config: TableConfig, options: WriteOptions) -> None:
    """Raise for an index that the table cannot have: `OptionError` for one of record keys if it has none, and `UnavailableError` for a
    record index of each partition, which no table of this engine gets.
    """
    chosen = stored_index_type(config) if options.index_type == "AUTO" else options.index_type
    if chosen == "RECORD_LEVEL_INDEX":
        raise UnavailableError(f"{INDEX_TYPE.key}={chosen}: {PARTITIONED_RECORD_INDEX}", table=config.name)
    INDEXES[chosen](config, options)


def is_global_anew(options: WriteOptions) -> bool:
    """True if a table made with these options has an index by which a key is unique in the table."""
    return is_global_type(options.index_type.replace("AUTO", "GLOBAL_SIMPLE"))


def keeps_buckets(config: TableConfig, options: WriteOptions) -> bool:
    """True if a write with these options puts keys where the table keeps them, which only bucket indexes can violate.

    Raises `OptionError` for buckets that are impossible with the table's key.
    """
    stored = stored_index_type(config)
    chosen = stored if options.index_type == "AUTO" else options.index_type
    return not is_ours(config) or _other_buckets(config, chosen, stored, options) is None


def keeps_index(config: TableConfig, options: WriteOptions) -> bool:
    """True if a write with these options finds every key that the table's own index finds. Raises as `keeps_buckets`."""
    stored = stored_index_type(config)
    chosen = stored if options.index_type == "AUTO" else options.index_type
    return keeps_buckets(config, options) and (not is_ours(config) or _narrower(config, chosen, stored) is None)


def _narrower(config: TableConfig, chosen: str, stored: str) -> str | None:
    """Why a write would miss keys stored in other partitions and store them again; None if it would not."""
    if not config.partition_fields or not is_global_type(stored) or is_global_type(chosen):
        return None
    return (
        f"{INDEX_TYPE.key}={chosen} looks for a key in one partition, and the table was created with {stored}, by which a key is stored"
        f" once in the whole table: a key of another partition would be stored twice. Leave it out; or set {INDEX_TYPE.key}={chosen} in"
        " the table's properties if a key may be stored once in each partition from now on"
    )


def _other_buckets(config: TableConfig, chosen: str, stored: str, options: WriteOptions) -> str | None:
    """Why a write would put keys into other buckets than the table's; None if it would not."""
    if chosen != stored and "BUCKET" in (chosen, stored):
        return f"{INDEX_TYPE.key}={chosen} cannot be used on a table created with {stored}"
    if chosen != "BUCKET":
        return None
    layouts = (BucketLayout.of(config, options), BucketLayout.of(config, WriteOptions.read(config.prefixed(STORED_PREFIX))))
    if layouts[0] == layouts[1]:
        return None
    asked, created = (f"{layout.num_buckets} buckets by {','.join(layout.hash_fields)}" for layout in layouts)
    return (
        f"{NUM_BUCKETS.key} and {BUCKET_HASH_FIELD.key} ask for {asked}, and the table was created with {created};"
        " they are fixed for the life of a table"
    )


def _check_keys(state: TableState, layout: BucketLayout) -> None:
    """True if the keys of another writer's table are stored in this layout's buckets. Reads only footers."""
    for piece in _some_slices(state)[:_CHECKED_FILES]:
        footer = None if piece.base_file is None else read_footer(state.storage, piece.base_file)
        keys = [] if footer is None else [key for key in (footer.min_key, footer.max_key) if key is not None]
        wrong = [key for key in keys if layout.buckets(pa.array([key], pa.string()))[0] != bucket_of(piece.file_id)]
        if wrong:
            raise OptionError(
                f"the record key {wrong[0]!r} is stored in the file group {piece.file_id}, where {layout.num_buckets} buckets by"
                f" {','.join(layout.hash_fields)} do not put it; set {NUM_BUCKETS.key} and {BUCKET_HASH_FIELD.key} as its writer did",
                table=state.config.name,
            )


def _check_unbucketed(state: TableState) -> None:
    """True if file ids show buckets, which Hudi does not store: another index would put new keys into any of them."""
    pieces = _some_slices(state)
    if pieces and all(has_bucket(piece.file_id) for piece in pieces):
        raise OptionError(
            f"the file groups of this table ({pieces[0].file_id}, ...) look like those of Hudi's bucket index; set"
            f" {INDEX_TYPE.key}=BUCKET and {NUM_BUCKETS.key} as its writer did, or {INDEX_TYPE.key}=SIMPLE if it has none",
            table=state.config.name,
        )


def _some_slices(state: TableState) -> list[FileSlice]:
    """Slices of the first partition that has some."""
    for partition in state.live_partitions():
        if pieces := state.view.latest_slices(partition):
            return pieces
    return []
