"""New records in tables with the BUCKET index: to their bucket's file group, or a new one."""

from __future__ import annotations

from lakehouse_engine.index.base import Slices
from lakehouse_engine.index.bucket import BucketLayout
from lakehouse_engine.write.batch.input import Batch
from lakehouse_engine.write.locate.buckets import BucketRows, place_in_buckets, rows_by_bucket
from lakehouse_engine.write.plan.placing import NewGroup, Placement, new_group_tasks
from lakehouse_engine.write.plan.write_plan import WritePlan
from lakehouse_engine.write.source import Rows
from lakehouse_engine.write.tasks.base_files import FileContext


def new_bucket(found: BucketRows, batch: Batch) -> NewGroup:
    """New file group for rows of a bucket that has no files yet."""
    return NewGroup(found.partition, batch.rows[found.rows], found.bucket)


def place_in_bases(layout: BucketLayout, batch: Batch, view: Slices, indices: Rows) -> Placement:
    """New records of a copy-on-write table: to their bucket's base file, or a new group."""
    placement = Placement()
    for found in place_in_buckets(layout, batch, view, indices):
        if found.piece is not None and found.piece.base_file is not None:
            placement.to_files.append((found.piece.base_file, batch.rows[found.rows]))
        else:
            placement.to_new.append(new_bucket(found, batch))
    return placement


def plan_new_buckets(files: FileContext, layout: BucketLayout, batch: Batch) -> WritePlan:
    """Every row to a new file group of its bucket, replacing one that the commit replaces."""
    groups = [new_bucket(found, batch) for found in rows_by_bucket(layout, batch, None)]
    return WritePlan(creates=new_group_tasks(files, groups, batch.source, 0))
