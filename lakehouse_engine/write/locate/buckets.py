"""Groups a batch's rows by bucket, for tables with the BUCKET index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse_engine.index.base import Slices
from lakehouse_engine.index.bucket import BucketLayout, slices_by_bucket
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.source import Rows


@dataclass(frozen=True, slots=True)
class BucketRows:
    """Row indices (ascending) of one bucket of a partition; `piece` is None for a new bucket."""

    partition: str
    bucket: int
    piece: FileSlice | None
    rows: Rows


def rows_by_bucket(layout: BucketLayout, batch: Batch, view: Slices | None) -> Iterator[BucketRows]:
    """Rows of every non-empty bucket; without a `view` all buckets are new.

    Raises as `BucketLayout.buckets` and `slices_by_bucket`.
    """
    for partition, indices in batch.rows_by_partition().items():
        slices = {} if view is None else slices_by_bucket(layout, view, partition)
        for bucket, rows in layout.rows_by_bucket(batch.keys, indices).items():
            yield BucketRows(partition, bucket, slices.get(bucket), rows)


def place_in_buckets(layout: BucketLayout, batch: Batch, view: Slices, indices: Rows) -> Iterator[BucketRows]:
    """`rows_by_bucket` for some rows of the batch."""
    for found in rows_by_bucket(layout, batch.part(indices), view):
        yield BucketRows(found.partition, found.bucket, found.piece, indices[found.rows])
