"""Finds the files of a query by record key: the record index of the metadata table names them, and no other is opened.

The record index says where keys are now, logs included. So it is asked for snapshots of the newest rows only, if the table has not changed
since the query's state was read, and it is passed over where it may lack rows, or where the text of a key is not certain.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.metadata_table.answers import record_locations
from lakehouse_engine.metadata_table.partitions import RECORD_INDEX
from lakehouse_engine.metadata_table.table import is_in_use
from lakehouse_engine.model.keys import RECORD_KEY, FileGroupId
from lakehouse_engine.read.key_values import key_values
from lakehouse_engine.read.pruning import may_be_foreign
from lakehouse_engine.read.record_index import trusted_record_index
from lakehouse_engine.read.sampling import sample_rows
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.record.keys.keygen import FieldKeyGenerator, key_generator_of
from lakehouse_engine.view.table_state import TableState

logger = logging.getLogger(__name__)

WORTH_ASKING = 8
"""Fewest slices: below that, opening footers takes no longer than opening the metadata table."""


def without_other_keys(state: TableState, plan: ScanPlan) -> ScanPlan:
    """A plan of the newest rows, reduced to the slices that have the keys that the filter names.

    The plan is unchanged if the filter names no keys, or the record index cannot be asked.
    """
    fields = state.config.record_key_fields
    if plan.wanted is None or len(plan.files) + len(plan.logged) < WORTH_ASKING or not fields:
        return plan
    if not is_in_use(state) or RECORD_INDEX not in state.config.metadata_partitions or not state.config.populates_meta_fields:
        return plan
    values = key_values(plan.wanted, fields)
    if values is None:
        return plan
    try:
        named = _named_groups(state, plan, values)
    except LakehouseError as error:
        logger.warning("the record index of %s is not used: %s", state.config.name, error)
        return plan
    if named is None:
        return plan
    files = tuple(file for file in plan.files if FileGroupId(file.partition_path, file.file_id) in named)
    return replace(plan, files=files, logged=tuple(piece for piece in plan.logged if piece.slice.group in named))


def _named_groups(state: TableState, plan: ScanPlan, values: pa.Table) -> set[FileGroupId] | None:
    """File groups of the keys; None if the index may say something else than the plan's state."""
    forms = _forms(state, plan)
    if forms is None:
        return None
    keys = pa.concat_arrays([form.record_keys(values) for form in forms])
    table = trusted_record_index(state)
    if not state.is_still(state.advance()):
        return None
    found = record_locations(table, keys.unique())
    distinct = found.group_by(["partition_path", "file_id"]).aggregate([])
    return {FileGroupId(path, file_id) for path, file_id in zip(*(column.to_pylist() for column in distinct.columns), strict=True)}


def _forms(state: TableState, plan: ScanPlan) -> list[FieldKeyGenerator] | None:
    """Ways in which the table's keys may be written; None if a stored row has another key."""
    generator = key_generator_of(state.config)
    forms = [generator, replace(generator, prefix_single=True)] if len(generator.record_key_fields) == 1 else [generator]
    if not may_be_foreign(state):
        return forms
    samples = sample_rows(state, plan.schema, generator.record_key_fields, partitions=2)
    return forms if all(any(_makes(form, sample.rows) for form in forms) for sample in samples) else None


def _makes(form: FieldKeyGenerator, rows: pa.Table) -> bool:
    """True if the stored keys of some rows are those made of their columns."""
    return bool(form.record_keys(rows).cast(pa.string()).equals(rows.column(RECORD_KEY).combine_chunks().cast(pa.string())))

