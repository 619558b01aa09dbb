"""Which of its two forms `ComplexKeyGenerator` gave the keys of one field in a table."""

from __future__ import annotations

import pyarrow as pa

from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.read.base_file import iter_base_file
from lakehouse_engine.record.keygen import key_generator_of
from lakehouse_engine.view.table_state import TableState


def prefixes_single_key(state: TableState, schema: pa.Schema) -> bool:
    """Whether a stored key reads `field:value` and not `value`: Hudi's versions differ, and mixing them makes duplicates silently
    (HUDI-7001). False for tables whose keys have one form only, and for those without a stored key.
    """
    config = state.config
    if len(config.record_key_fields) != 1 or not config.populates_meta_fields or not _both_forms(state):
        return False
    for piece in state.view.latest_slices():
        if piece.base_file is None:
            continue
        fields = pa.schema([schema.field(config.record_key_fields[0].split(".")[0])])
        for group in iter_base_file(state.storage, piece.base_file, fields, meta_columns=(RECORD_KEY,)):
            if group.num_rows:
                row = group.slice(0, 1)
                prefixed = key_generator_of(config, prefix_single=True).record_keys(row)
                return bool(prefixed[0].as_py() == row.column(RECORD_KEY)[0].as_py())
    return False


def _both_forms(state: TableState) -> bool:
    """Whether the table's key generator is one that has two forms."""
    return (state.config.key_generator or "").upper().startswith("COMPLEX")
