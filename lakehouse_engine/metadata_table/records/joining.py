"""Puts records together."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lakehouse_engine.format.metadata_table.merging import Records
from lakehouse_engine.format.metadata_table.schema import payload_schema


def completed(payloads: pa.Table) -> pa.Table:
    """Payloads with all columns of `payload_schema()`; new ones are null."""
    names, count = payloads.column_names, payloads.num_rows
    columns = [payloads.column(one.name) if one.name in names else pa.nulls(count, one.type) for one in payload_schema()]
    return pa.Table.from_arrays(columns, schema=payload_schema())


def joined(parts: Iterable[Records]) -> Records:
    """All records in one."""
    found = list(parts)
    keys = pa.concat_arrays([pa.array([], pa.binary()), *(one.keys for one in found)])
    return Records(keys, pa.concat_tables([payload_schema().empty_table(), *(one.payloads for one in found)]))
