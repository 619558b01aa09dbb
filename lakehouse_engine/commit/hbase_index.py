"""Keeps the entries of a table's HBASE index up to date with each change of the table (docs/adr/0075).

Entries of new keys are put before the action is completed, as those of deleted keys are removed after it: whenever the process dies, each
stored key has its entry. A move overwrites the entry of a stored key, so the partition that it leaves is marked before that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError, ExternalIndexError, LakehouseError
from lakehouse_engine.index.hbase.entries import Entries, entries_of_rows, has_hbase_index, partitions_back, same_places
from lakehouse_engine.index.hbase.marks import store_marks, stored_marks
from lakehouse_engine.metadata_table.upkeep.locations import key_moves
from lakehouse_engine.metadata_table.upkeep.rows import slice_rows
from lakehouse_engine.model.commit_metadata import HoodieCommitMetadata
from lakehouse_engine.model.instant import Instant
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.model.outcomes import Outcome
from lakehouse_engine.model.plans import HoodieRestoreMetadata, HoodieRollbackMetadata
from lakehouse_engine.record.matching import first_repeated
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Done:
    """What was done for the instant at `time`: entries that were `put`, those that they overwrote (`before`), and keys with the places that
    they left (`gone`).
    """

    time: str
    put: pa.Table
    before: pa.Table
    gone: pa.Table


_DONE: dict[str, _Done] = {}
"""By root, the last action that puts entries, until it is completed or taken back by this process. Nothing depends on it, if the process
dies.
"""


def _take_done(state: TableState, time: str) -> _Done | None:
    done = _DONE.get(state.storage.root)
    return _DONE.pop(state.storage.root) if done is not None and done.time == time else None


class HBaseUpkeep:
    """Participant that keeps the entries of a table's HBASE index."""

    def join(self, state: TableState) -> TableState:
        """Does nothing: the first look at the entries brings them to order."""
        return state

    def follow(self, state: TableState, instant: Instant, outcome: Outcome) -> None:
        """Put the entries of a commit's new keys; mark what comes back by a rollback or a restore.

        Raises `DuplicateKeyError` for a key that the table would store twice, and as `Entries.settle`.
        """
        if not has_hbase_index(state.config):
            return
        if isinstance(outcome, HoodieCommitMetadata):
            self._put(state, instant, outcome)
        elif isinstance(outcome, HoodieRestoreMetadata | HoodieRollbackMetadata):
            back = partitions_back(outcome) if isinstance(outcome, HoodieRollbackMetadata) else None
            store_marks(state.storage, stored_marks(state.storage).after(instant.requested_time, back))

    def _put(self, state: TableState, instant: Instant, metadata: HoodieCommitMetadata) -> None:
        moves, time = key_moves(state, instant.requested_time, metadata), instant.requested_time
        new, gone = _distinct(pa.concat_tables(moves.put)), pa.concat_tables(moves.gone)
        if not len(new) and not len(gone):
            return
        if (repeated := first_repeated(new.column("key").combine_chunks())) is not None:
            raise _stored_twice(state, repeated[0])
        entries = Entries.of(state)
        entries.settle()
        keys = new.column("key").combine_chunks()
        known = entries.client.find(keys.slice(0, 0) if entries.is_needless else keys)
        done, left = _changes(entries, known, new, gone, time)
        if left:
            store_marks(state.storage, stored_marks(state.storage).with_moving(time, left))
        _DONE[state.storage.root] = done
        entries.client.put(entries_of_rows(done.put, time))

    def finish(self, state: TableState, instant: Instant) -> None:
        """Remove the entries of keys that are gone."""
        done = _take_done(state, instant.requested_time)
        if done is None:
            return
        try:
            self._finish(state, instant, done)
        except ExternalIndexError as error:
            where = Entries.of(state).client.options.place
            said = "%s is completed; entries of keys that it deleted stay in %s, and name no row (%s)"
            logger.warning(said, instant, where, error.__cause__)

    def _finish(self, state: TableState, instant: Instant, done: _Done) -> None:
        client = Entries.of(state).client
        if len(done.gone):
            entries = client.find(pc.unique(done.gone.column("key").combine_chunks()))
            at, _, same = same_places(entries, done.gone)
            client.delete(entries.column("key").combine_chunks().take(pa.array(at[same])))
        store_marks(state.storage, stored_marks(state.storage).without(instant.requested_time))

    def take_back(self, state: TableState, instant_times: Sequence[str]) -> None:
        """Put back what this process overwrote. Without that, entries of dead writes stay, which name no row, and marks say where rows lack
        theirs.
        """
        for time in instant_times:
            done = _take_done(state, time)
            if done is not None:
                _take_back(state, done)


def _take_back(state: TableState, done: _Done) -> None:
    try:
        client = Entries.of(state).client
        client.put(done.before)
        keys = done.put.column("key").combine_chunks()
        client.delete(keys.filter(pc.invert(pc.is_in(keys, done.before.column("key").combine_chunks()))))
        store_marks(state.storage, stored_marks(state.storage).without(done.time))
    except LakehouseError as error:
        said = "the entries of %s of %s were not taken back; they are not believed (%s)"
        logger.warning(said, done.time, state.config.name, error.message)


def _distinct(rows: pa.Table) -> pa.Table:
    """Rows without those that are there twice, as of a key that a log has as inserted and updated."""
    return rows.group_by(rows.column_names, use_threads=False).aggregate([])


def _stored_twice(state: TableState, key: str) -> DuplicateKeyError:
    return DuplicateKeyError(
        f"the write stores the key {key!r} twice, and the HBASE index of the table has one place for a key. Nothing was written: upsert the"
        " rows, insert them with hoodie.datasource.insert.dup.policy=drop, or combine the batch (hoodie.combine.before.insert=true)",
        table=state.config.name,
        key=key,
    )


def _changes(entries: Entries, known: pa.Table, new: pa.Table, gone: pa.Table, time: str) -> tuple[_Done, frozenset[str]]:
    """What to do for a commit, and the partitions of stored rows whose entries that overwrites. `known`: entries of the `new` keys.

    Raises `DuplicateKeyError` for a key that is stored elsewhere, and stays there.
    """
    at, number, same = same_places(known, new)
    instants = known.column("instant").combine_chunks().dictionary_encode()
    believed = np.array([entries.is_believed(one) for one in instants.dictionary.to_pylist()], bool)[np.asarray(instants.indices)]
    right = same & believed[at]
    wanted = np.ones(len(new), bool)
    wanted[number[right]] = False
    elsewhere = known.take(pa.array(at[~same]))
    found_at, _, moves = same_places(elsewhere, gone)
    moved_at = found_at[moves]
    _check_not_stored(entries.state, elsewhere.take(pa.array(np.setdiff1d(np.arange(len(elsewhere)), moved_at))))
    left = frozenset(pc.unique(elsewhere.column("partition_path").combine_chunks().take(pa.array(moved_at))).to_pylist())
    before = known.take(pa.array(at[~right]))
    before = before.filter(pc.not_equal(before.column("instant"), time))  # of an earlier run of this
    put = new.filter(pa.array(wanted))
    return _Done(time, put, before, gone.filter(pc.invert(pc.is_in(gone.column("key"), new.column("key").combine_chunks())))), left


def _check_not_stored(state: TableState, entries: pa.Table) -> None:
    """Raise `DuplicateKeyError` for a key that is where its entry says."""
    live = frozenset(state.live_partitions() if len(entries) else ())
    for path in pc.unique(entries.column("partition_path").combine_chunks()).to_pylist():
        here = entries.filter(pc.equal(entries.column("partition_path"), path))
        ids = set(here.column("file_id").to_pylist())
        for piece in state.view.latest_slices(path) if path in live else ():
            if piece.file_id in ids:
                keys = here.filter(pc.equal(here.column("file_id"), piece.file_id)).column("key")
                stored = slice_rows(state, piece, [RECORD_KEY]).column(RECORD_KEY).combine_chunks().cast(pa.string())
                found = keys.filter(pc.is_in(keys, stored))
                if len(found):
                    raise _stored_twice(state, found[0].as_py())
