"""Writes base files: the one loop behind new groups, merges and compactions.

A file's marker is written before the file, so that a rollback of a dead instant knows the file. The file's name holds a random attempt: a
retried or speculative attempt writes another file of the same group, which the commit removes because no write stat names it. An attempt
that outlives its write removes its file itself (`attempt`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import PartitionValueError, StoredFileExistsError
from lakehouse_engine.files.base_file import DICTIONARY_COLUMNS
from lakehouse_engine.files.footer import read_footer
from lakehouse_engine.format.file_names import PARTITION_METAFILE, MarkerType, marker_path, write_token
from lakehouse_engine.format.parquet_chunks import ChunkedFile
from lakehouse_engine.format.partition_metafile import render_partition_metafile
from lakehouse_engine.index.lookup import stored_filter
from lakehouse_engine.model.files import BaseFile, LogFile, join_path
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.options import WriteOptions
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.locations import has_file
from lakehouse_engine.view.listings.listing import StorageLister
from lakehouse_engine.write.source import Rows, RowSource
from lakehouse_engine.write.tasks.attempt import FileAttempt
from lakehouse_engine.write.tasks.dictionaries import alike, plain_bytes, without_unused
from lakehouse_engine.write.tasks.file_writer import ROW_GROUP_BYTES, BaseFileWriter, FileIdentity, Inherited, base_form
from lakehouse_engine.write.tasks.parquet_output import CopiedChunks, ParquetForm

Mask = npt.NDArray[np.bool_]
NO_ROWS: Rows = np.empty(0, dtype=np.int64)
_LARGEST = 1024 * 1024 * 1024
"""Most bytes of rows that are put together at once."""


@dataclass(frozen=True, slots=True)
class FileContext:
    """What every file of one commit shares. `schema` has the user columns, `avro_schema` the same with meta columns as text.

    `unique_columns` have no repeated values, so no dictionary is tried. `logs_by_writer`: names of logs have the instant of the write, not
    that of the slice. `sorted_by` names the order of all rows.
    """

    storage: Storage
    instant_time: str
    schema: pa.Schema
    avro_schema: str
    options: WriteOptions
    unique_columns: frozenset[str] = frozenset()
    populate: bool = True
    logs_by_writer: bool = False
    sorted_by: str | None = None


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """What a task did: the stat for the commit record, or None if nothing had to be written."""

    stat: HoodieWriteStat | None


def announce(context: FileContext, file: BaseFile | LogFile, kind: MarkerType) -> None:
    """Make the marker, then the partition's metafile (without which Hudi does not see the partition).

    The file's `FileAttempt` calls it right before the file is opened. Raises `PartitionValueError` for a partition inside another one, and
    `UnsafePathError` for one behind a link.
    """
    partition = file.partition_path
    metafile = join_path(partition, PARTITION_METAFILE)
    # Checked before the marker is made: a path that cannot be reached could not be rolled back either.
    known = has_file(context.storage, metafile)
    context.storage.create(marker_path(context.instant_time, file.path, kind), b"")
    if known:
        return
    depth = partition.count("/") + 1 if partition else 0
    with suppress(StoredFileExistsError):  # another task of this commit was first
        context.storage.create(metafile, render_partition_metafile(context.instant_time, depth))
    other = _nested_with(context.storage, partition)
    if other is not None:
        context.storage.delete(metafile)
        raise PartitionValueError(
            f"the partition {partition!r} cannot be beside {other!r}: one is inside of the other, and readers look for no partitions in"
            " a partition; replace the '/' in the values, or create the table with url-encoded partition paths"
        )


def _nested_with(storage: Storage, partition: str) -> str | None:
    """A partition above or below this new one, or None. Called when its metafile exists, so that of two new partitions the later sees the
    other.
    """
    pieces = partition.split("/") if partition else []
    above = ["/".join(pieces[:count]) for count in range(len(pieces))]
    found = next((path for path in above if has_file(storage, join_path(path, PARTITION_METAFILE))), None)
    return found if found is not None else next(iter(StorageLister(storage).below(partition)), None)


def next_version(context: FileContext, partition_path: str, file_id: str, task: int) -> BaseFile:
    """Name of the group's next base file, with a token that no other attempt has."""
    return BaseFile(partition_path, file_id, write_token(task, 0, secrets.randbelow(1_000_000)), context.instant_time)


def attempt_at(context: FileContext, file: BaseFile | LogFile, kind: MarkerType) -> FileAttempt:
    """Attempt to make a file; it writes the marker first."""
    return FileAttempt(context.storage, context.instant_time, file.path, kind, lambda: announce(context, file, kind))


def form_of(context: FileContext) -> ParquetForm:
    """How base files of the commit store rows."""
    return base_form(context.schema, context.options, context.unique_columns)


def open_writer(
    context: FileContext, file: BaseFile, kind: MarkerType, inherited: Inherited | None = None, pattern: ChunkedFile | None = None
) -> BaseFileWriter:
    """Writer of a base file: `inherited` are keys of the file that it replaces, `pattern` has the form of chunks that are copied."""
    return BaseFileWriter(
        context.storage,
        file.path,
        form_of(context),
        context.avro_schema,
        context.options,
        populate=context.populate,
        inherited=inherited,
        pattern=pattern,
        attempt=attempt_at(context, file, kind),
        sorted_by=context.sorted_by,
    )


def identity(context: FileContext, file: BaseFile, task: int) -> FileIdentity:
    """Values of the meta columns that are the same for all rows of a file."""
    return FileIdentity(context.instant_time, file.partition_path, file.name, task, context.populate)


def created_stat(file: BaseFile, size: int, rows: int) -> HoodieWriteStat:
    """Statistics of a new base file; `size` in bytes."""
    return HoodieWriteStat(
        file_id=file.file_id,
        path=file.path,
        partition_path=file.partition_path,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=size,
        file_size_in_bytes=size,
    )


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows for a base file, about a row group of them.

    `stored` rows, with meta columns, keep their stamps except the file's name. `given` rows of a batch (record key, partition path, user
    columns) are stamped by this commit; they replace the stored rows at `places` (ascending row numbers), or follow the stored rows if it
    is None. Stored rows at `gone` are left out.

    `copied`: columns of the old file's row group that stay as they are; `stored` has the others. `new_keys`: True if their record keys may
    be missing in the replaced file. The numbers are for the commit's record.
    """

    stored: pa.Table | None = None
    given: pa.Table | None = None
    places: Rows | None = None
    gone: Rows = field(default_factory=lambda: NO_ROWS)
    copied: CopiedChunks | None = None
    new_keys: bool = False
    updates: int = 0
    deletes: int = 0
    inserts: int = 0

    def write(self, writer: BaseFileWriter, stamp: FileIdentity, stamped: int) -> int:
        """Write the rows, stamped by `stamp`. `stamped` rows have been stamped so far; returns the new count."""
        stored = None if self.stored is None else stamp.restamp(encoded(self.stored))
        given = None if self.given is None else stamp.stamp(self.given, stamped)
        if stored is not None and self.places is not None and given is not None:
            stored, given = placed(stored, given, self.places, self.gone), None
        elif stored is not None and len(self.gone):
            stored = placed(stored, stored.slice(0, 0), NO_ROWS, self.gone)
        if self.copied is not None:
            assert stored is not None
            writer.copy(self.copied, stored)
        elif stored is not None:
            writer.write(stored, new_keys=self.new_keys)
        if given is not None:
            writer.write(given, new_keys=self.new_keys)
        return stamped + (0 if self.given is None else self.given.num_rows)


def placed(stored: pa.Table, given: pa.Table, places: Rows, gone: Rows = NO_ROWS) -> pa.Table:
    """The stored rows without those at `gone`; the given rows, cut to the same columns, replace those at `places`."""
    order = np.arange(stored.num_rows)
    order[places] = stored.num_rows + np.arange(given.num_rows)
    both = pa.concat_tables(alike(stored, given))
    return without_unused(both.unify_dictionaries().take(pa.array(np.delete(order, gone))))


def is_large(stored: pa.Table, given: pa.Table | None) -> bool:
    """True if the rows of a row group and their replacements exceed what is put together at once (Arrow holds 2 GB of text in a piece)."""
    return _bytes(stored, given) > _LARGEST


def cut(
    stored: pa.Table, given: pa.Table | None, places: Rows, gone: Rows
) -> Iterator[tuple[pa.Table, pa.Table | None, Rows, Rows]]:
    """Arguments for `placed`; if they are large, cut into pieces of a row group each."""
    size, step = _bytes(stored, given), max(1, stored.num_rows)
    if size > _LARGEST:
        step = max(1, step * ROW_GROUP_BYTES // size)
    for start in range(0, max(1, stored.num_rows), step):
        met, lost = (slice(*np.searchsorted(numbers, [start, start + step])) for numbers in (places, gone))
        incoming = None if given is None else given.slice(met.start, met.stop - met.start)
        yield stored.slice(start, step), incoming, places[met] - start, gone[lost] - start


def _bytes(stored: pa.Table, given: pa.Table | None) -> int:
    return plain_bytes(stored) + (0 if given is None else int(given.nbytes))


@dataclass(slots=True)
class WrittenFile:
    """A base file that was written, with counts of what happened to its group's rows."""

    file: BaseFile
    size: int = 0
    rows: int = 0
    updates: int = 0
    deletes: int = 0
    inserts: int = 0

    def stat(self, prev_commit: str) -> HoodieWriteStat:
        """Stat for the commit's record. `prev_commit` is the instant of the replaced file."""
        return replace(
            created_stat(self.file, self.size, self.rows),
            prev_commit=prev_commit,
            num_deletes=self.deletes,
            num_update_writes=self.updates,
            num_inserts=self.inserts,
        )

    def changed(self, prev_commit: str) -> WriteStatus:
        """No stat if no row was changed, deleted or added: then the commit removes the file, as no write stat names it."""
        return WriteStatus(self.stat(prev_commit) if self.updates or self.deletes or self.inserts else None)


def write_base_file(
    context: FileContext,
    file: BaseFile,
    task: int,
    portions: Iterable[Portion],
    *,
    merges: bool = False,
    inherited: Inherited | None = None,
    pattern: ChunkedFile | None = None,
) -> WrittenFile:
    """Write all `portions`, in order, to `file`, which `next_version` named for this `task`.

    `merges`: True if it replaces a file of its group, whose keys are `inherited`. With `pattern` portions may be copied. Raises what making
    the portions raises; the partial file is garbage that the instant's marker names.
    """
    writer = open_writer(context, file, MarkerType.MERGE if merges else MarkerType.CREATE, inherited, pattern)
    stamp, written, stamped = identity(context, file, task), WrittenFile(file), 0
    try:
        for portion in portions:
            stamped = portion.write(writer, stamp, stamped)
            written.updates += portion.updates
            written.deletes += portion.deletes
            written.inserts += portion.inserts
        written.size, written.rows = writer.close()
    except BaseException:
        writer.discard()
        raise
    return written


def given_portions(
    context: FileContext, source: RowSource, rows: Rows | None, *, new_keys: bool = True, inserts: bool = True
) -> Iterator[Portion]:
    """Rows of a batch (None: all) in portions. Without `inserts` they are not counted as inserted."""
    step, count = context.options.row_group_rows, source.num_rows if rows is None else len(rows)
    for start in range(0, count, step):
        given = source.slice(start, step) if rows is None else source.take(rows[start : start + step])
        yield Portion(given=given, new_keys=new_keys, inserts=given.num_rows if inserts else 0)


def inherited_keys(context: FileContext, storage: Storage, base: BaseFile | None) -> Inherited | None:
    """Keys in the footer of `base` (in the table in `storage`), for its next version; None if it has no Bloom filter."""
    footer = read_footer(storage, base) if context.populate and base is not None else None
    bloom = None if footer is None else stored_filter(footer)
    return None if footer is None or bloom is None else Inherited(bloom, footer.min_key, footer.max_key)


def encoded(rows: pa.Table) -> pa.Table:
    """The rows, with the repeating meta columns that they have as dictionaries."""
    for name in [name for name in DICTIONARY_COLUMNS if name in rows.column_names]:
        column = rows.column(name)
        if not pa.types.is_dictionary(column.type):
            rows = rows.set_column(rows.column_names.index(name), name, column.dictionary_encode())
    return rows
