"""Entries of a table's HBASE index: whose they are, where they may be wrong, and how they are fitted to the table's files.

What holds (docs/adr/0075): each key that is stored has an entry that names its file group, but in partitions that are marked. A key that is
not where its entry says is not stored.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.errors import DuplicateKeyError, ExternalIndexError, MetadataError, MissingOptionError, UnsupportedTableError
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.format.file_names import is_base_file_name
from lakehouse_engine.index.choice import stored_index_type
from lakehouse_engine.index.hbase.client import HBaseClient, client_of
from lakehouse_engine.index.hbase.marks import Marks, store_marks, stored_marks
from lakehouse_engine.index.hbase.rows import ENTRIES
from lakehouse_engine.metadata_table.upkeep.rows import slice_rows
from lakehouse_engine.model.commit_metadata import WRITER_KEY
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.instant import Action, Instant
from lakehouse_engine.model.keys import COMMIT_TIME, RECORD_KEY
from lakehouse_engine.model.plans import HoodieRollbackMetadata
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.model.table_version import TableVersion
from lakehouse_engine.options import INDEX_TYPE, STORED_PREFIX
from lakehouse_engine.options.hbase import HBaseOptions
from lakehouse_engine.read.complete_slices import check_complete
from lakehouse_engine.record.matching import first_repeated, matches
from lakehouse_engine.timeline.timeline import Timeline
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

HBASE = "HBASE"
_MOST_FOREIGN = 16
"""Newest commits of other programs whose entries are looked for."""
_SAMPLE = 8
"""Files of such a commit of which one key is looked up."""


def has_hbase_index(config: TableConfig) -> bool:
    """True if writes of the table keep an HBASE index up."""
    return stored_index_type(config) == HBASE


def check_possible(config: TableConfig, options: HBaseOptions) -> None:
    """Raise for a table that cannot have an HBASE index: `UnsupportedTableError` by its version or its meta columns, and
    `MissingOptionError` for an option that the index needs.
    """
    if config.version is not TableVersion.SIX:
        raise UnsupportedTableError(
            f"{INDEX_TYPE.key}=HBASE: only tables of version 6 have this index, which Hudi dropped in 1.1; the table has version"
            f" {int(config.version)}. {INDEX_TYPE.key}=RECORD_INDEX is an index for all versions",
            table=config.name,
        )
    if not config.record_key_fields or not config.populates_meta_fields:
        without = "record key fields" if not config.record_key_fields else "meta columns"
        raise UnsupportedTableError(f"{INDEX_TYPE.key}=HBASE: a table without {without} has no keys that it could find", table=config.name)
    if options.missing is not None:
        raise MissingOptionError(f"{INDEX_TYPE.key}=HBASE needs the option {options.missing}", table=config.name)


def stored_hbase_options(config: TableConfig) -> HBaseOptions:
    """Where the table's own index is: services and rollbacks of the table keep it up, too, which know no options of writes."""
    return HBaseOptions.read(config.prefixed(STORED_PREFIX))


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries about the rows of one state of a table. The table lock is held."""

    state: TableState
    client: HBaseClient

    @classmethod
    def of(cls, state: TableState) -> Entries:
        """The entries of the table's own index. Raises as `check_possible`."""
        options = stored_hbase_options(state.config)
        check_possible(state.config, options)
        return cls(state, client_of(options))

    @property
    def is_needless(self) -> bool:
        """True if the table has no rows: none of them can lack its entry."""
        return not any(self.state.view.latest_slices(path) for path in self.state.live_partitions())

    def settle(self) -> None:
        """Bring entries to order before they are believed: those of marked partitions, and of commits of other programs without entries,
        are put again.

        Raises `ExternalIndexError` if the entries are another table's or gone, and as `HBaseClient` and `SliceReader.read`.
        """
        marks = self._owned()
        back = {instant.requested_time: instant for instant in undoing(self.state.timeline)}
        for time in sorted(back.keys() - marks.seen):
            marks = marks.after(time, self._back_by(back[time]))
        wrong = marks.wrong(self.state.timeline)
        if wrong is not None:
            wrong |= self._unkept()
        if wrong is None or wrong:
            many = "the whole table" if wrong is None else f"{len(wrong)} partitions"
            count = self.fit(wrong)
            logger.warning(
                "%d entries of %s in %s were put again: rows of %s came back, or were written by a program that keeps none",
                count,
                self.state.config.name,
                self.client.options.place,
                many,
            )
        store_marks(self.state.storage, Marks(marks.token, seen=frozenset(back)))

    def _back_by(self, instant: Instant) -> Collection[str] | None:
        """Partitions whose rows a rollback or restore brought back; None: any."""
        if instant.action is not Action.ROLLBACK:
            return None
        try:
            return partitions_back(self.state.active.plan(HoodieRollbackMetadata, instant))
        except MetadataError:
            return None  # it does not say

    def _owned(self) -> Marks:
        """The table's marks, if the entries are its own. Those of a table without rows become its own, if they are no other's."""
        storage, place = self.state.storage, self.client.options.place
        root, marks = storage.root, stored_marks(storage)
        if self.is_needless:
            self.client.make_table()
        owner = self.client.owner()
        if marks.token and owner == own_name(root, marks.token):
            return marks
        if self.is_needless and (owner is None or owner.startswith(own_name(root, ""))):
            marks = Marks(new_token(), seen=frozenset(instant.requested_time for instant in undoing(self.state.timeline)))
            store_marks(storage, marks)
            self.client.set_owner(own_name(root, marks.token))
            return marks
        found = "nothing says that it has entries of this table" if owner is None else f"it has entries that were put as {owner!r}"
        raise ExternalIndexError(
            f"the HBASE index of {self.state.config.name} ({root}) is to be in {place}, where {found}. Nothing was written, as a key"
            " without an entry would be stored twice. `lakehouse index rebuild` fills this HBase table, or another one, from the table's"
            f" files, and takes it over; {INDEX_TYPE.key}=GLOBAL_SIMPLE in the table's properties does without",
            table=self.state.config.name,
            hbase_table=self.client.options.table,
        )

    def fit(self, partitions: Collection[str] | None) -> int:
        """Put an entry for each row of some partitions (None: all), and return how many. Raises as `check_complete`."""
        live = self.state.live_partitions()
        found = live if partitions is None else sorted(frozenset(partitions) & frozenset(live))
        check_complete(self.state, None if partitions is None else frozenset(found))
        count = 0
        for piece in self._slices(found):
            entries = self._entries_of(piece)
            self.client.put(entries)
            count += len(entries)
        return count

    def _slices(self, partitions: Collection[str]) -> Iterator[FileSlice]:
        for path in partitions:
            yield from self.state.view.latest_slices(path)

    def check_once(self) -> None:
        """Raise `DuplicateKeyError` if a key is stored twice. All keys are held in memory."""
        slices = self._slices(self.state.live_partitions())
        columns = (slice_rows(self.state, piece, [RECORD_KEY]).column(RECORD_KEY) for piece in slices)
        keys = pa.chunked_array([column.combine_chunks().cast(pa.string()) for column in columns], pa.string())
        if (repeated := first_repeated(keys)) is not None:
            key, count = repeated
            raise DuplicateKeyError(
                f"the key {key!r} is stored {count} times, and the HBASE index has one place for a key; nothing was put. Delete the key,"
                " and insert the row that should stay",
                table=self.state.config.name,
            )

    def _entries_of(self, piece: FileSlice) -> pa.Table:
        """With the commit time of each row where Hudi believes it, else the newest commit."""
        rows = slice_rows(self.state, piece, [RECORD_KEY, COMMIT_TIME])
        done = self.state.timeline.completed().writes()
        last = done.last()
        assert last is not None, "the slice has a commit"
        times = rows.column(COMMIT_TIME).combine_chunks().dictionary_encode()
        said = [time if self.is_believed(time) else last.requested_time for time in times.dictionary.to_pylist()]
        instants = pa.array(said, pa.string()).take(times.indices)
        return entries_at(rows.column(RECORD_KEY).combine_chunks().cast(pa.string()), piece.partition_path, piece.file_id, instants)

    def is_believed(self, instant: str) -> bool:
        """Hudi's rule (`HBaseIndexUtils`/`checkIfValidCommit`): completed, or before the timeline's start."""
        done = self.state.timeline.completed().writes()
        return done.contains(instant) or self.state.timeline.is_before_start(instant)

    def _unkept(self) -> frozenset[str]:
        """Partitions of commits that another program made since our last one, and whose new files have no entries."""
        found: set[str] = set()
        for instant in self._foreign():
            stats = self.state.commit_metadata(instant).partition_to_write_stats
            keys, places = self._sample(instant)
            if not keys:
                continue
            located = self.client.find(pa.array(keys, pa.string()).unique())
            columns = (located.column(name).to_pylist() for name in ("key", "partition_path", "file_id"))
            known = {key: (path, file_id) for key, path, file_id in zip(*columns, strict=True)}
            if any(known.get(key) != place for key, place in zip(keys, places, strict=True)):
                found |= stats.keys()
        return frozenset(found)

    def _foreign(self) -> Iterator[Instant]:
        """Newest first."""
        for instant in list(reversed(self.state.timeline.completed().writes().instants))[:_MOST_FOREIGN]:
            if WRITER_KEY in self.state.commit_metadata(instant).extra_metadata:
                return
            yield instant

    def _sample(self, instant: Instant) -> tuple[list[str], list[tuple[str, str]]]:
        """The least key of some new file groups of a commit, and partition and file id of each."""
        keys: list[str] = []
        places: list[tuple[str, str]] = []
        for path, stats in self.state.commit_metadata(instant).partition_to_write_stats.items():
            new = {stat.file_id for stat in stats if stat.num_inserts and is_base_file_name((stat.path or "").rpartition("/")[2])}
            for piece in self.state.view.latest_slices(path) if new else ():
                base = piece.base_file
                if piece.file_id in new and base is not None and not piece.log_files and base.instant_time == instant.requested_time:
                    key = read_footer(self.state.storage, base).min_key
                    if key is not None:
                        keys.append(key)
                        places.append((path, piece.file_id))
                if len(keys) >= _SAMPLE:
                    return keys, places
        return keys, places


def undoing(timeline: Timeline) -> list[Instant]:
    """Completed rollbacks and restores."""
    return [instant for instant in timeline.completed() if instant.action in (Action.ROLLBACK, Action.RESTORE)]


def partitions_back(rollback: HoodieRollbackMetadata) -> Collection[str] | None:
    """Partitions whose rows a rollback brought back; None: any. Its files do not name the partitions whose file groups a replacing commit
    replaced.
    """
    named = rollback.instants_rollback
    if not named or any(one.action == Action.REPLACE_COMMIT.value for one in named):
        return None
    return rollback.partition_metadata.keys()


def new_token() -> str:
    """Part of `own_name`, new each time that a table's entries begin."""
    return uuid.uuid4().hex


def own_name(root: str, token: str) -> str:
    """Name by which an HBase table says whose entries it has. A copy of a table has another root; entries of a time before the table went
    without have another token.
    """
    return f"{root} {token}"


def entries_at(keys: pa.Array, partition: str, file_id: str, instants: pa.Array) -> pa.Table:
    """Entries of keys in one file group, in the columns of `ENTRIES`."""
    places = [pa.repeat(pa.scalar(text, pa.string()), len(keys)) for text in (partition, file_id)]
    return pa.Table.from_arrays([keys, *places, instants], schema=ENTRIES)


def entries_of_rows(rows: pa.Table, instant: str) -> pa.Table:
    """Entries of rows of `key`, `partition_path` and `file_id` that one instant put there."""
    columns = [rows.column(name) for name in ENTRIES.names[:-1]]
    return pa.Table.from_arrays([*columns, pa.chunked_array([pa.repeat(instant, len(rows))])], schema=ENTRIES)


def same_places(entries: pa.Table, rows: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries and rows of the same keys: position of the entry, of the row, and whether both have one partition and file group. Keys
    are distinct in each.
    """
    at, number = matches(entries.column("key"), rows.column("key").combine_chunks())
    left, right = entries.take(pa.array(at)), rows.take(pa.array(number))
    equal = [pc.equal(left.column(name), right.column(name)) for name in ("partition_path", "file_id")]
    return at, number, np.asarray(pc.and_(*equal)).astype(bool)
