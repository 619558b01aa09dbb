"""Rows of single slices, before and after a commit whose files exist already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.format.file_names import is_base_file_name, is_log_file_name, parse_base_file, parse_log_file
from lakehouse_engine.manifest.missing import logged_slices
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.write_stats import HoodieWriteStat
from lakehouse_engine.view.table_state import TableState


def slice_rows(data: TableState, piece: FileSlice, columns: Sequence[str], also: str | None = None) -> pa.Table:
    """Merged rows of a slice. `also`: an incomplete instant whose log blocks count, too. Raises as `SliceReader.read`."""
    schema = table_schema(data)
    scope = LogScope.of(data.timeline)
    if also is not None:
        scope = replace(scope, completed=scope.completed | {also})
    (logged,) = logged_slices(data.manifest, None, [piece])
    return SliceReader(data.storage, schema, MergeRules.of(data.config, schema), scope).read(logged, columns)


def slice_after(path: str, file_id: str, written: Sequence[HoodieWriteStat], old: FileSlice | None) -> FileSlice:
    """A slice after a commit that wrote these files to its group; `old`: the slice before it."""
    named = [((stat.path or "").rpartition("/")[2], stat.file_size_in_bytes) for stat in written]
    bases = [parse_base_file(path, name, size) for name, size in named if is_base_file_name(name)]
    logs = tuple(parse_log_file(path, name, size) for name, size in named if is_log_file_name(name))
    if bases or old is None:
        base = bases[0] if bases else None
        return FileSlice(FileGroupId(path, file_id), logs[0].instant_time if base is None else base.instant_time, base, logs)
    return replace(old, log_files=(*old.log_files, *logs))
