"""Finds the file groups of a query by record key: the record index of the metadata table names them, and no other is opened.

The record index says where keys are now, logs included. So it is asked for snapshots of the newest rows only, if the table has not changed
since the query's state was read, and it is passed over where it may lack rows, or where the text of a key is not certain.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa

from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.metadata_table.trusted import Trusted
from lakehouse_engine.model.keys import RECORD_KEY, FileGroupId
from lakehouse_engine.read.key_values import key_values
from lakehouse_engine.read.pruning import may_be_foreign
from lakehouse_engine.read.record_index import check_logged_deletions
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.sampling import sample_rows
from lakehouse_engine.record.keys.keygen import FieldKeyGenerator, key_generator_of
from lakehouse_engine.view.table_state import TableState


def groups_with_keys(trusted: Trusted, wanted: RowFilter) -> frozenset[FileGroupId] | None:
    """The file groups that have the rows of the newest snapshot for which a filter is true.

    None if the filter does not name few keys, or the record index cannot be asked, or may say something else than the state.
    """
    config = trusted.data.config
    if not trusted.has(RECORD_INDEX) or not config.record_key_fields or not config.populates_meta_fields:
        return None
    values = key_values(wanted, config.record_key_fields)
    return None if values is None else trusted.answer(RECORD_INDEX, partial(_groups, trusted.data, wanted, values))


def _groups(state: TableState, wanted: RowFilter, values: pa.Table, table: MetadataTable) -> frozenset[FileGroupId] | None:
    """Raises `UnavailableError` if the index may lack rows."""
    check_logged_deletions(state)
    forms = _forms(state, wanted.schema)
    if forms is None or not state.is_still(state.advance()):
        return None
    keys = pa.concat_arrays([form.record_keys(values) for form in forms])
    found = record_locations(table, keys.unique())
    distinct = found.group_by(["partition_path", "file_id"]).aggregate([])
    columns = (column.to_pylist() for column in distinct.columns)
    return frozenset(FileGroupId(path, file_id) for path, file_id in zip(*columns, strict=True))


def _forms(state: TableState, schema: pa.Schema) -> list[FieldKeyGenerator] | None:
    """Ways in which the table's keys may be written; None if a stored row has another key."""
    generator = key_generator_of(state.config)
    forms = [generator, replace(generator, prefix_single=True)] if len(generator.record_key_fields) == 1 else [generator]
    if not may_be_foreign(state):
        return forms
    samples = sample_rows(state, schema, generator.record_key_fields, partitions=2)
    return forms if all(any(_makes(form, sample.rows) for form in forms) for sample in samples) else None


def _makes(form: FieldKeyGenerator, rows: pa.Table) -> bool:
    """True if the stored keys of some rows are those made of their columns."""
    return bool(form.record_keys(rows).cast(pa.string()).equals(rows.column(RECORD_KEY).combine_chunks().cast(pa.string())))
