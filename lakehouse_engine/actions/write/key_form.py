"""Which of its two forms `ComplexKeyGenerator` gave the keys of one field in a table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.read.base_file import iter_base_file
from lakehouse_engine.read.log_scanner import LoggedSlice, LogScope
from lakehouse_engine.read.merge_rules import MergeRules
from lakehouse_engine.read.slice_reader import SliceReader
from lakehouse_engine.record.keygen import key_generator_of
from lakehouse_engine.view.table_state import TableState


def prefixes_single_key(state: TableState, schema: pa.Schema) -> bool:
    """Whether a stored key reads `field:value` and not `value`: Hudi's versions differ, and mixing them makes duplicates silently
    (HUDI-7001). False for tables whose keys have one form only, and for those without a stored key.
    """
    config = state.config
    if len(config.record_key_fields) != 1 or not config.populates_meta_fields or not _both_forms(state):
        return False
    fields = pa.schema([schema.field(config.record_key_fields[0].split(".")[0])])
    row = next((rows.slice(0, 1) for rows in _stored(state, schema, fields) if rows.num_rows), None)
    if row is None:
        return False
    prefixed = key_generator_of(config, prefix_single=True).record_keys(row)
    return bool(prefixed[0].as_py() == row.column(RECORD_KEY)[0].as_py())


def _stored(state: TableState, schema: pa.Schema, fields: pa.Schema) -> Iterator[pa.Table]:
    """Stored rows with their key and those fields: of base files first, then of slices that have logs only."""
    slices = state.view.latest_slices()
    for base in (piece.base_file for piece in slices if piece.base_file is not None):
        yield from iter_base_file(state.storage, base, fields, meta_columns=(RECORD_KEY,))
    logged = [piece for piece in slices if piece.base_file is None]
    if logged:
        reader = SliceReader(state.storage, schema, MergeRules.of(state.config, schema), LogScope.of(state.timeline))
        for piece in logged:
            yield from reader.iter(LoggedSlice(piece), [RECORD_KEY, *fields.names])


def _both_forms(state: TableState) -> bool:
    """Whether the table's key generator is one that has two forms."""
    return (state.config.key_generator or "").upper().startswith("COMPLEX")
