"""BUCKET index: a key's hash determines its file group in a partition (Hudi's `SIMPLE` bucket engine, `BucketIdentifier`).

A partition has one file group per bucket, whose file id starts with the bucket's number, so no lookup is needed. The number of buckets is
part of the hash and fixed for the life of a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.engine import TaskRunner, looking_runner
from lakehouse_engine.errors import OptionError, RecordKeyError, UnsupportedTableError
from lakehouse_engine.format.file_names import bucket_of
from lakehouse_engine.index.base import Found, KeyedRows, Rows, Slices, StoredKeys
from lakehouse_engine.index.lookup import TagTask, tag_files
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.options import BUCKET_HASH_FIELD, NUM_BUCKETS, WriteOptions
from lakehouse_engine.record.keys.java_hash import java_string_hash
from lakehouse_engine.record.keys.record_key import EMPTY_PART, NULL_PART
from lakehouse_engine.storage.base import Storage

Buckets = npt.NDArray[np.int64]



@dataclass(frozen=True, slots=True)
class BucketLayout:
    """How a table's keys are spread: `key_fields` make the record key, `hash_fields` are those that determine the bucket."""

    num_buckets: int
    key_fields: tuple[str, ...]
    hash_fields: tuple[str, ...]

    @classmethod
    def of(cls, config: TableConfig, options: WriteOptions) -> BucketLayout:
        """Layout that a write asks for.

        Raises `OptionError` for a table without key fields, and for hash fields that are not key fields.
        """
        keys, table = config.record_key_fields, config.name
        if not keys:
            raise OptionError("hoodie.index.type=BUCKET needs a table with record key fields; this one has generated keys", table=table)
        named = options.bucket_hash_field.split(",") if options.bucket_hash_field else keys
        for name in named:
            if name not in keys:
                raise OptionError(f"{BUCKET_HASH_FIELD.key}: {name!r} is not one of the record key fields {list(keys)}", table=table)
        # Hudi takes the values in the key's order.
        return cls(options.num_buckets, keys, tuple(name for name in keys if name in named))

    def buckets(self, keys: pa.Array) -> Buckets:
        """Bucket of every record key. Raises `RecordKeyError` for keys that Hudi's versions hash differently."""
        return np.asarray((self._hashes(keys) & 0x7FFFFFFF).astype(np.int64) % self.num_buckets)

    def rows_by_bucket(self, keys: pa.Array, rows: Rows | None = None) -> dict[int, Rows]:
        """The `rows` (indices into `keys`; None for all) of every non-empty bucket, in order."""
        numbers = np.arange(len(keys), dtype=np.int64) if rows is None else rows
        buckets = self.buckets(keys if rows is None else keys.take(pa.array(rows)))
        order = np.argsort(buckets, kind="stable")
        cuts = np.flatnonzero(np.diff(buckets[order])) + 1
        return {int(buckets[part[0]]): numbers[part] for part in np.split(order, cuts) if len(part)}

    def _hashes(self, keys: pa.Array) -> npt.NDArray[np.uint32]:
        """`List.hashCode` of the hashed values, as 32 bits."""
        if len(self.key_fields) == 1:
            _refuse(pc.match_substring(keys, ":"), keys, "':' in the key, which Hudi takes for the end of a field's name")
            return _chained([java_string_hash(keys)])
        return _chained([java_string_hash(part) for part in self._parts(keys)])

    def _parts(self, keys: pa.Array) -> Iterator[pa.Array]:
        """Values of the hash fields in keys of the form `field:value,field:value`; null and empty ones as "" (both hash to 0)."""
        count = len(self.key_fields)
        _refuse(pc.not_equal(pc.count_substring(keys, ","), count - 1), keys, "',' in a value, which Hudi takes for the end of a field")
        pieces = pc.list_flatten(pc.split_pattern(keys, ","))
        for index, field in enumerate(self.key_fields):
            if field in self.hash_fields:
                mine = pieces.take(pa.array(np.arange(index, len(pieces), count)))
                text = pc.utf8_slice_codeunits(mine, len(field) + 1)
                yield pc.if_else(pc.is_in(text, value_set=pa.array([NULL_PART, EMPTY_PART])), "", text)


def _chained(hashes: list[npt.NDArray[np.uint32]]) -> npt.NDArray[np.uint32]:
    total = np.ones(len(hashes[0]), np.uint32)
    for one in hashes:
        total = total * np.uint32(31) + one
    return total


def _refuse(bad: pa.Array, keys: pa.Array, what: str) -> None:
    """Refuse keys that Hudi 0.15 and 1.2 put into different buckets, because each would write a second record."""
    if pc.any(bad).as_py():
        example = keys.filter(bad)[0].as_py()
        raise RecordKeyError(
            f"the BUCKET index cannot place the record key {example!r}: it has {what}; replace it, or use another index",
            rows=pc.sum(bad).as_py(),
        )


def slices_by_bucket(layout: BucketLayout, view: Slices, partition: str) -> Mapping[int, FileSlice]:
    """The slice of every bucket in a partition.

    Raises `OptionError` for a file group outside this layout's buckets, and `UnsupportedTableError` for two groups of one bucket.
    """
    found: dict[int, FileSlice] = {}
    for piece in view.latest_slices(partition):
        bucket = bucket_of(piece.file_id)
        if bucket is None or bucket >= layout.num_buckets:
            raise OptionError(
                f"the file group {piece.file_id} is not of one of {layout.num_buckets} buckets: the table was not written with this"
                f" index, or with another {NUM_BUCKETS.key}",
                partition=partition,
            )
        if bucket in found:
            raise UnsupportedTableError(
                f"bucket {bucket} has two file groups, {found[bucket].file_id} and {piece.file_id}; the BUCKET index has one for each",
                partition=partition,
            )
        found[bucket] = piece
    return found


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Looks for a key only in its bucket's base file. Keys are unique within a partition."""

    layout: BucketLayout

    @property
    def is_global(self) -> bool:
        return False

    def find(self, storage: Storage, view: Slices, batch: KeyedRows, stored: StoredKeys, runner: TaskRunner) -> Found:
        """Like `Index.find`. Raises as `BucketLayout.buckets` and `slices_by_bucket`."""
        places = [
            place for partition, chosen in batch.rows_by_partition.items() for place in self._pieces(view, partition, batch.keys, chosen)
        ]
        tasks = [
            TagTask(storage, (piece.base_file,), stored, batch.keys.take(pa.array(rows)), rows, False)
            for piece, rows in places
            if piece.base_file is not None
        ]
        looked = looking_runner(runner, storage).run(tag_files, tasks, name="tag")
        return Found([found for files in looked for found in files if len(found.positions)], places)

    def fix(self) -> None:
        """Does nothing: buckets do not change."""

    def _pieces(self, view: Slices, partition: str, keys: pa.Array, rows: Rows) -> Iterator[tuple[FileSlice, Rows]]:
        slices = slices_by_bucket(self.layout, view, partition)
        for bucket, chosen in self.layout.rows_by_bucket(keys, rows).items():
            if bucket in slices:
                yield slices[bucket], chosen
