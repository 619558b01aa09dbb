"""Which index a write looks keys up by, and why (docs/adr/0073).

A table that was created with `hoodie.index.type=AUTO` looks into all its files while they are few, and by its record index once there is
one. Both find the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lakehouse_engine.files.footers import FOOTERS
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX, SECONDARY_INDEX
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import INDEX_TYPE, STORED_PREFIX, WriteOptions
from lakehouse_engine.options.index import AUTO_INDEX_FILES, AUTO_INDEX_KEYS
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

FILES_TYPE, RECORD_TYPE = "GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"
_SAMPLE = 16
"""Base files whose footers say how many rows a byte has."""
_BETWEEN = 10
"""Commits after which an index that is gone, but not on request, is built again: building costs about as much as so many look-ups."""

_ADVISED: set[str] = set()
"""Roots of tables for which this process has logged an advice."""


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """An index of a write (a value of `hoodie.index.type`), and why it is that. `is_due`: a record index is to be built behind the write.
    `is_advised`: it would pay, but is too large for that; the reason names the command.
    """

    index: str
    reason: str
    is_due: bool = False
    is_advised: bool = False

    def __str__(self) -> str:
        return f"{self.index}: {self.reason}"


def stored_index_type(config: TableConfig) -> str:
    """Index type of the table's creation; SIMPLE if nothing is stored, and GLOBAL_SIMPLE if the engine chooses."""
    return _stored(config).replace("AUTO", FILES_TYPE)


def is_ours(config: TableConfig) -> bool:
    """True if the table stores its index type; other writers' tables do not."""
    return INDEX_TYPE.key in config.prefixed(STORED_PREFIX)


def is_global_type(name: str) -> bool:
    """True for an index type by which a key is unique in the table."""
    return name.startswith("GLOBAL_") or name == "HBASE"


def index_type(config: TableConfig, options: WriteOptions) -> str:
    """Index type of a write, before anything is opened."""
    if options.index_type != "AUTO":
        return options.index_type
    return RECORD_TYPE if _uses_record_index(config, options) else stored_index_type(config)


def chooses(config: TableConfig, options: WriteOptions) -> bool:
    """True if the index of a write is this engine's choice."""
    return options.index_type == "AUTO" and _stored(config) == "AUTO"


def is_own_choice(config: TableConfig, options: WriteOptions) -> bool:
    """True if the table's record index was built by this engine itself, and nothing asks for it: it may go again."""
    needed = any(name.startswith(SECONDARY_INDEX) for name in config.metadata_partitions)
    return chooses(config, options) and config.auto_index.word == "BUILT" and not (options.auto_index.is_asked or needed)


def choose_index(state: TableState, options: WriteOptions) -> IndexChoice:
    """The index of a write, with its reason. Lists the table's files, and opens footers of some, only where a record index may pay.

    Raises as `read_footer`, and `PropertiesError` for a damaged property.
    """
    config, asked = state.config, options.auto_index
    if options.index_type != "AUTO":
        return IndexChoice(options.index_type, f"asked for by {INDEX_TYPE.key}")
    if not is_ours(config):
        return IndexChoice(stored_index_type(config), "another program made the table, in which a key is unique in its partition")
    if not chooses(config, options):
        return IndexChoice(stored_index_type(config), "the table was created with it")
    if _uses_record_index(config, options):
        by_itself = ", which this engine built by itself" if config.auto_index.word == "BUILT" else ""
        return IndexChoice(RECORD_TYPE, f"the metadata table has a record index{by_itself}")
    refusal = _refusal(state, options)
    if refusal is not None:
        return IndexChoice(FILES_TYPE, refusal)
    bases = [piece for piece in state.view.latest_slices() if piece.base_file is not None]
    if len(bases) <= asked.files:
        return IndexChoice(FILES_TYPE, f"{len(bases)} base files, and a record index pays above {asked.files} ({AUTO_INDEX_FILES.key})")
    keys = _keys(state, bases)
    if keys > asked.keys:
        return IndexChoice(
            FILES_TYPE,
            f"about {keys:,} keys in {len(bases):,} base files: a record index pays, and is built behind a write up to {asked.keys:,} keys"
            f" ({AUTO_INDEX_KEYS.key}); `lakehouse index create T record_index` builds it",
            is_advised=True,
        )
    return IndexChoice(
        FILES_TYPE, f"{len(bases)} base files, above {asked.files} ({AUTO_INDEX_FILES.key}): a record index is built behind the write", True
    )


def advise(state: TableState, choice: IndexChoice) -> None:
    """Log an index that is worth building by hand, once for each table and process."""
    if choice.is_advised and state.storage.root not in _ADVISED:
        _ADVISED.add(state.storage.root)
        logger.warning("%s (%s) has %s", state.config.name, state.storage.root, choice.reason)


def _stored(config: TableConfig) -> str:
    return INDEX_TYPE.read({INDEX_TYPE.key: config.prefixed(STORED_PREFIX).get(INDEX_TYPE.key, "SIMPLE")})


def _uses_record_index(config: TableConfig, options: WriteOptions) -> bool:
    if not chooses(config, options) or options.auto_index.refused_by is not None:
        return False
    return RECORD_INDEX in config.metadata_partitions and config.populates_meta_fields and bool(config.record_key_fields)


def _refusal(state: TableState, options: WriteOptions) -> str | None:
    """Why the table gets no record index whatever its size; None if it may."""
    config, mark = state.config, state.config.auto_index
    if not config.record_key_fields:
        return "its keys are generated"
    if not config.populates_meta_fields:
        return "a table without meta columns has no record index"
    if options.auto_index.refused_by is not None:
        return f"{options.auto_index.refused_by} rules a record index out"
    if mark.word == "DUPLICATES":
        return "keys are stored more than once, and a record index has one place for each"
    if mark.word == "DROPPED":
        return "its index was dropped on request; `lakehouse index create T record_index` builds it again"
    if mark.word == "BUILT" and (since := _writes_since(state, mark.instant)) < _BETWEEN:
        return f"its record index is gone, {since} commits after it was built; it is built again after {_BETWEEN}"
    return None


def _writes_since(state: TableState, instant: str) -> int:
    done = state.timeline.completed().writes()
    return _BETWEEN if done.is_before_start(instant) else len(done.newer_than(instant))


def _keys(state: TableState, slices: Sequence[FileSlice]) -> int:
    """About how many rows the slices have, by footers of some."""
    some = slices[:: -(-len(slices) // _SAMPLE)]
    bases = [piece.base_file for piece in some if piece.base_file is not None]
    rows: int = sum(FOOTERS.read(state.storage, base).num_rows for base in bases)
    return rows * sum(piece.size for piece in slices) // max(1, sum(base.size for base in bases))
