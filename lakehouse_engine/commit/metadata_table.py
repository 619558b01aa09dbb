"""Keeps Hudi's metadata table (`.hoodie/metadata`) up to date with each change of the table (docs/adr/0066).

Readers trust it over listing while `hoodie.table.metadata.partitions` names it. So its delta commit is completed before the action that it
belongs to, and taken back before that one's files go (design: metadata table, section 8). Partitions that cannot be kept up are dropped
alone, by name; a metadata table that lacks a completed instant, or cannot be read, is dropped whole. The index definitions in
`.hoodie/.index_defs` belong to the user and stay: Hudi rebuilds indexes from them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from lakehouse_engine.commit.indexing import running_builds, settle_dead_builds
from lakehouse_engine.commit.table_clock import table_clock
from lakehouse_engine.errors import FormatError, MissingFileError, StoredFileNotFoundError, TableError, UnavailableError
from lakehouse_engine.metadata_table.building.beside import take_back
from lakehouse_engine.metadata_table.building.drop import drop
from lakehouse_engine.metadata_table.building.naming import IN_PROGRESS_KEY, PARTITIONS_KEY, unname_partitions
from lakehouse_engine.metadata_table.completeness import unknown_instants
from lakehouse_engine.metadata_table.delta import is_taken_in, take_back_delta, write_delta
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import METADATA_TABLE, MetadataTable, is_in_use
from lakehouse_engine.metadata_table.upkeep.changes import changes_of, unkept_partitions
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.outcomes import Outcome
from lakehouse_engine.model.savepoint import HoodieSavepointMetadata
from lakehouse_engine.model.table_config import AUTO_INDEX_KEY, AutoIndex
from lakehouse_engine.timeline.config_store import ConfigStore
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

_BROKEN = (FormatError, TableError, UnavailableError, MissingFileError, StoredFileNotFoundError)
"""The metadata table, or a file that it is about, is damaged or gone. Other errors, as of a store that does not answer, fail the action."""
_WARNED: set[tuple[str, str]] = set()
"""Roots of tables, and reasons, for which this process has warned."""


class MetadataTableUpkeep:
    """Participant that writes a delta commit of the metadata table for each action. `follow` raises as `check_one_place`."""

    def join(self, state: TableState) -> TableState:
        """Settle index builds that died; drop what cannot be kept up, and what a program that ignored the metadata table left behind."""
        state = _settled(state)
        if not is_in_use(state):
            return drop_metadata_table(state, "no partition of it is complete")
        try:
            unkept = unkept_partitions(state)
            if unkept:
                state = drop_partitions(state, unkept)
            unknown = unknown_instants(MetadataTable.open(state))
        except _BROKEN as error:
            return drop_metadata_table(state, f"it cannot be read ({error.message})")
        if unknown:
            return drop_metadata_table(state, f"a program that did not keep it up made {unknown[0]}")
        return state

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        if isinstance(outcome, HoodieSavepointMetadata):  # it has the time of its write
            return
        named = _as_named(state)
        if named is None:
            return
        try:
            self._follow(named, instant, outcome)
        except _BROKEN as error:
            drop_metadata_table(named, f"it cannot be kept up ({error.message})")

    def _follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        table = MetadataTable.open(state)
        time = instant.requested_time
        if table.state.timeline.contains(time):
            if is_taken_in(table, time):
                return  # the action is resumed, and a compaction of the metadata table has merged what it did
            take_back_delta(table, time)
            table = MetadataTable.open(state)
        found = changes_of(table, instant, outcome)
        if found is None:
            return
        completed_at = _completion_time(state, table) if state.format.completes_with_time else None
        write_delta(table, time, found.changes, found.schema, completed_at)

    def finish(self, state: TableState, instant: Instant) -> None:
        """Does nothing: states before an action need no less of the metadata table."""

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        named = _as_named(state)
        if named is None:
            return
        try:
            table = _without_builds(named, MetadataTable.open(named), instant_times)
            for time in instant_times:
                if not take_back_delta(table, time):
                    drop_metadata_table(named, f"{time} is taken back, which its base files have")
                    return
        except _BROKEN as error:
            drop_metadata_table(named, f"it cannot be read ({error.message})")


def _settled(state: TableState) -> TableState:
    try:
        return settle_dead_builds(state)
    except _BROKEN as error:
        state = drop_metadata_table(state, f"it cannot be read ({error.message})")
        return settle_dead_builds(state)


def _without_builds(state: TableState, table: MetadataTable, instant_times: Sequence[str]) -> MetadataTable:
    """Return index builds to their plans if they may have read what is taken back. Who runs one finds that out when it is written."""
    done, running = table.state.timeline.completed(), running_builds(state)
    if not running or not any(done.contains(time) for time in instant_times):
        return table
    for build in running:
        take_back(state, build)
    return MetadataTable.open(state.advance())


def _as_named(state: TableState) -> TableState | None:
    """The state without what was dropped of the metadata table since it was read: by a rollback or restore that went back behind its
    compaction, or by this write (`drop_chosen_index`). None if no metadata table is in use.
    """
    if not is_in_use(state):
        return None
    config = ConfigStore(state.storage).read()
    named = state if config.metadata_partitions == state.config.metadata_partitions else replace(state, config=config)
    return named if is_in_use(named) else None


def _completion_time(state: TableState, table: MetadataTable) -> str:
    """A time after all of both timelines: a log that seems older than a compaction is in none of the slices that are read."""
    return table_clock(state).next(Timeline((*state.active.load().instants, *table.state.timeline.instants)))


def drop_metadata_table(state: TableState, reason: str) -> TableState:
    """Drop the metadata table like a writer of Hudi with `hoodie.metadata.enable=false`: first the properties, then the files. Returns the
    state after that; the same state if there is no metadata table.
    """
    named = [key for key in (PARTITIONS_KEY, IN_PROGRESS_KEY) if state.config.properties.get(key)]
    present = state.may_have_folder(METADATA_TABLE) and bool(state.storage.list(METADATA_TABLE))
    if not named and not present:
        return state
    _warn(
        state,
        "the metadata table",
        reason,
        "Readers find files by listing directories, and its record index and statistics are gone. `lakehouse metadata rebuild` builds it"
        " again from all files of the table",
    )
    drop(state)
    return state.refresh()


def drop_partitions(state: TableState, dropped: Collection[str]) -> TableState:
    """Drop some partitions of the metadata table: first the property, then the folders. Definitions stay, from which Hudi builds an index
    again.
    """
    names = ", ".join(sorted(dropped))
    cost = "The rest of the metadata table stays; Hudi builds these again when it writes next"
    _warn(state, f"{names} in the metadata table", "this engine does not keep such indexes up to date", cost)
    unname_partitions(state, dropped)
    for name in sorted(dropped):
        state.storage.delete_tree(f"{METADATA_TABLE}/{name}")
    return state.refresh()


def drop_chosen_index(state: TableState, key: str) -> None:
    """Drop a record index that this engine chose by itself, for a write that stores `key` twice; the table remembers that. Its lock is
    held. If the process dies before the table remembers it, the index is built again by and by.
    """
    reason = f"a write stores the key {key!r} twice, for which it has no place"
    _warn(state, "the record index, which this engine chose for the table,", reason, "Writes look for keys in the files again")
    drop(state, [RECORD_INDEX])
    ConfigStore(state.storage).update({AUTO_INDEX_KEY: str(AutoIndex("DUPLICATES"))})


def _warn(state: TableState, what: str, reason: str, cost: str) -> None:
    """Warn about the cost of a drop, once for each table, reason and process."""
    if (state.storage.root, reason) in _WARNED:
        return
    _WARNED.add((state.storage.root, reason))
    logger.warning("%s of %s (%s) is dropped: %s. %s", what, state.config.name, state.storage.root, reason, cost)

