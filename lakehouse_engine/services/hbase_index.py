"""Fills the HBASE index of a table from its files, and makes it the table's index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_engine.commit.locked import locked_table
from lakehouse_engine.errors import OptionError
from lakehouse_engine.index.choice import stored_index_type
from lakehouse_engine.index.hbase.client import client_of
from lakehouse_engine.index.hbase.entries import HBASE, Entries, check_possible, new_token, own_name, undoing
from lakehouse_engine.index.hbase.marks import Marks
from lakehouse_engine.model.services import HBaseIndexChange
from lakehouse_engine.model.table_config import HBASE_INDEX_KEY
from lakehouse_engine.options import INDEX_TYPE, OPTIONS, STORED_PREFIX, check_known, layered, stored_defaults
from lakehouse_engine.options.hbase import HBaseOptions
from lakehouse_engine.read.complete_slices import check_not_bootstrapped
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.timeline.config_store import ConfigStore


def rebuild(storage: Storage, options: Mapping[str, Any], *, lock_timeout_ms: int) -> HBaseIndexChange:
    """Put an entry for each stored key, and store `options` and the index type in the table's properties. Writers wait meanwhile.

    If the process dies, the entries have no owner, and writes by the index are refused until it is run again.

    Raises, before anything is put, `OptionError` for options of anything else and for a table with buckets, as `check_possible`, and
    `DuplicateKeyError` for a key that is stored twice; and `ExternalIndexError` if HBase does not answer.
    """
    check_known(options)
    others = [key for key in options if key not in OPTIONS or "hbase" not in OPTIONS[key].key]
    if others:
        raise OptionError(f"{others[0]!r} is no option of an HBASE index", table=storage.root)
    with locked_table(storage, lock_timeout_ms=lock_timeout_ms, alone_ms=lock_timeout_ms) as state:
        config = state.config
        if stored_index_type(config) == "BUCKET":
            raise OptionError(f"{INDEX_TYPE.key}=HBASE: keys of this table are in buckets, for the life of the table", table=config.name)
        stored = layered(config.prefixed(STORED_PREFIX), options, {INDEX_TYPE.key: HBASE})
        asked = HBaseOptions.read(stored)
        check_possible(config, asked)
        check_not_bootstrapped(state)
        entries = Entries(state, client_of(asked))
        entries.check_once()
        entries.client.make_table()
        entries.client.set_owner(None)
        count = entries.fit(None)
        token, seen = new_token(), frozenset(instant.requested_time for instant in undoing(state.timeline))
        entries.client.set_owner(own_name(storage.root, token))
        ConfigStore(storage).update({**stored_defaults({**options, INDEX_TYPE.key: HBASE}), HBASE_INDEX_KEY: Marks(token, seen=seen).text})
        return HBaseIndexChange(hbase_table=asked.table, entries=count)
