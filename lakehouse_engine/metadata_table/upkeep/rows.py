"""Rows of single slices, before and after a commit whose files exist already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakehouse_engine.files.log_scanner import LogScope
from lakehouse_engine.files.merge_rules import MergeRules
from lakehouse_engine.files.schema import table_schema
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.manifest.missing import logged_slices
from lakehouse_engine.model.files import FileSlice
from lakehouse_engine.view.table_state import TableState


def slice_rows(data: TableState, piece: FileSlice, columns: Sequence[str], also: str | None = None) -> pa.Table:
    """Merged rows of a slice. `also`: an incomplete instant whose log blocks count, too. Raises as `SliceReader.read`."""
    schema = table_schema(data)
    scope = LogScope.of(data.timeline)
    if also is not None:
        scope = replace(scope, completed=scope.completed | {also})
    (logged,) = logged_slices(data.manifest, None, [piece])
    return SliceReader(data.storage, schema, MergeRules.of(data.config, schema), scope).read(logged, columns)
