"""Decides which updates of some columns are logged as such: rows with those columns only, whose others stay as they are stored.

As Hudi's `MergeIntoHoodieTableCommand` (`hoodie.spark.sql.merge.into.partial.updates`): in versions 8 and 9, under event time and commit
time ordering, in tables with meta columns and without partial updates of their own. Unlike there also with a global index, if no partition
column is updated, so that a record stays where it is.

By commit time Hudi 1.2.0 fails to read a slice in whose logs a row comes after the deletion of its key, behind any partial row (a
`NullPointerException` in `SparkRecordMergingUtils.mergePartialRecords`). Such slices are rewritten, and tables with buckets, which log rows
without a look, get whole rows.
"""

from __future__ import annotations

from lakehouse_engine.files.log_scanner import has_partial_rows
from lakehouse_engine.format.table_format import format_of
from lakehouse_engine.index.bucket import BucketIndex
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.record.keys.keygen import root_columns
from lakehouse_engine.record.merging.mergers import UpdateColumns
from lakehouse_engine.record.merging.payloads import payload_of
from lakehouse_engine.write.context import WriteContext


def absent_columns(context: WriteContext) -> frozenset[str]:
    """Columns that rows of an update lack in a log; empty if it logs whole rows."""
    config, merger = context.config, context.merger
    if not (isinstance(merger, UpdateColumns) and context.options.partial_updates and config.populates_meta_fields):
        return frozenset()
    mode = payload_of(config).merger
    if not (format_of(config).logs_partial_rows and mode.whole_rows and mode.equals_win) or merger.merger != mode or merger.deleted_at:
        return frozenset()
    if isinstance(context.index, BucketIndex) and not mode.compares_ordering:
        return frozenset()
    absent = frozenset(name for name in context.schema.names if name.lower() not in merger.columns)
    moving = set(root_columns(config.partition_fields, context.schema.names)) - absent
    return frozenset() if moving or absent.intersection(context.ordering.roots) else absent


def takes_no_row_back(context: WriteContext, piece: FileSlice) -> bool:
    """Whether Hudi could not read the slice once its logs have a row whose key they deleted before."""
    by_commit_time = format_of(context.config).orders_by_completion and not payload_of(context.config).merger.compares_ordering
    return by_commit_time and any(has_partial_rows(context.storage, log) for log in piece.log_files)
