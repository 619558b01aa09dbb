"""Buffers rows by file group on their way into logs (Hudi's Flink `StreamWriteFunction`: `DataBucket`, `TotalSizeTracer`).

A bucket becomes a block at its own limit, and the largest bucket does when all together reach theirs. So memory stays bounded however large
a batch is, and a small batch makes one block a file group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

_STEP = 8
"""Rows are added in parts of at most this fraction of a bucket's limit, the most by which a bucket may exceed it."""


@dataclass(slots=True)
class _Bucket:
    parts: list[pa.Table] = field(default_factory=list)
    size: int = 0


class BucketBuffer:
    """Rows by bucket, each bucket's in the order they came in. Limits are bytes of Arrow data.

    Write what `add` and `flush` yield at once, in that order: it is no longer counted. `reduce` shrinks the rows of a block (to one a key)
    when it is yielded. `largest` is the most that was ever held.
    """

    def __init__(self, bucket_bytes: int, total_bytes: int, reduce: Callable[[pa.Table], pa.Table] | None = None) -> None:
        self._bucket_bytes, self._total_bytes, self._reduce = bucket_bytes, total_bytes, reduce
        self._buckets: dict[int, _Bucket] = {}
        self.size = 0
        self.largest = 0

    def add(self, bucket: int, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """Add rows; yields the buckets (number, rows) that have become large enough for a block, and empties them."""
        step = max(1, min(self._bucket_bytes, self._total_bytes) // _STEP)
        for part in _parts(rows, step):
            self._take(bucket, part)
            if self._buckets[bucket].size >= self._bucket_bytes:
                yield bucket, self._remove(bucket)
            while self.size >= self._total_bytes:
                fullest = max(self._buckets, key=lambda number: self._buckets[number].size)
                yield fullest, self._remove(fullest)

    def flush(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield what is left, bucket by bucket."""
        for bucket in sorted(self._buckets):
            yield bucket, self._remove(bucket)

    def _take(self, bucket: int, rows: pa.Table) -> None:
        held = self._buckets.setdefault(bucket, _Bucket())
        size = rows.nbytes
        held.parts.append(rows)
        held.size += size
        self.size += size
        self.largest = max(self.largest, self.size)

    def _remove(self, bucket: int) -> pa.Table:
        held = self._buckets.pop(bucket)
        self.size -= held.size
        rows = pa.concat_tables(held.parts)
        return rows if self._reduce is None else self._reduce(rows)


def _parts(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """The rows in order, cut until no part of more than one row has more than `size` bytes."""
    if rows.num_rows > 1 and rows.nbytes > size:
        half = rows.num_rows // 2
        yield from _parts(rows.slice(0, half), size)
        yield from _parts(rows.slice(half), size)
    elif rows.num_rows:
        yield rows
