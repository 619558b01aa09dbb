"""The record index that a table gets without asking (docs/adr/0073): built behind a write, and remembered in the table's properties."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import CommitConflictError, LakehouseError, RecordKeyError
from lakehouse_engine.index.choice import chooses
from lakehouse_engine.metadata_table.building import build as building
from lakehouse_engine.metadata_table.building import drop as dropping
from lakehouse_engine.metadata_table.partitions import FILES, RECORD_INDEX
from lakehouse_engine.metadata_table.table import is_in_use
from lakehouse_engine.model.table_config import AUTO_INDEX_KEY, AutoIndex, TableConfig
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


def build_record_index(state: TableState, *, lock_timeout_ms: int) -> bool:
    """Build the record index of a table that chose to have one. Returns False, and leaves it to a later write, while anything is pending or
    another writer is at work. A table with a key twice gets none, and remembers that.

    Raises `LockTimeoutError`, and as `building.build`, with the table as it was.
    """
    pending = next(iter(state.timeline.pending()), None)
    if pending is not None:
        logger.info("the record index of %s is not built while %s is pending", state.config.name, pending)
        return False
    try:
        with locked_table(state.storage, lock_timeout_ms=lock_timeout_ms, alone_ms=0, joined=False) as data:
            return RECORD_INDEX not in data.config.metadata_partitions and _built(data)
    except CommitConflictError as error:
        logger.info("the record index of %s is not built now: %s", state.config.name, error)
        return False


def _built(data: TableState) -> bool:
    before, newest = data.config.auto_index, data.timeline.completed().writes().last()
    _mark(data.storage, AutoIndex("BUILT", "" if newest is None else newest.requested_time))
    try:
        building.build(data, [RECORD_INDEX], table_clock(data))
    except RecordKeyError as error:
        _mark(data.storage, AutoIndex("DUPLICATES"))
        logger.warning("%s keeps looking for keys in its files: %s", data.config.name, error.message)
        _take_back(data)
    except BaseException:
        _mark(data.storage, before)
        raise
    return True


def _take_back(data: TableState) -> None:
    """Remove what a failed build left, and the metadata table if the build made it."""
    now = data.advance()
    if is_in_use(data):
        building.build(now, [FILES], table_clock(now))  # builds nothing: it removes what is not named
    else:
        dropping.drop(now)


def _mark(storage: Storage, mark: AutoIndex) -> None:
    ConfigStore(storage).update({AUTO_INDEX_KEY: str(mark) or None})


@contextmanager
def dropped_on_request(storage: Storage, dropped: Collection[str] | None, *, lock_timeout_ms: int) -> Iterator[None]:
    """Drop partitions of the metadata table (None: all of it) meanwhile: a record index among them is not built again by itself, and
    neither is a metadata table that goes whole. If the drop fails, the table chooses as before, and so does a table that has none of them.
    """
    config = ConfigStore(storage).read()
    present = set(config.metadata_partitions)
    going = present if dropped is None else present & set(dropped)
    if not _may_choose(config) or not going & {RECORD_INDEX, FILES}:
        yield
        return
    before = config.auto_index
    _put(storage, AutoIndex("DROPPED"), lock_timeout_ms)
    try:
        yield
    except LakehouseError:
        _put(storage, before, lock_timeout_ms)
        raise


def asked_for(storage: Storage, built: Collection[str], *, lock_timeout_ms: int) -> None:
    """Remember that the record index is no choice of this engine's any more, if it is among the partitions built."""
    if RECORD_INDEX in built and ConfigStore(storage).read().properties.get(AUTO_INDEX_KEY):
        _put(storage, AutoIndex(), lock_timeout_ms)


def _put(storage: Storage, mark: AutoIndex, lock_timeout_ms: int) -> None:
    with TableLock(storage, lock_timeout_ms):
        _mark(storage, mark)


def _may_choose(config: TableConfig) -> bool:
    return chooses(config, WriteOptions())
