"""Compares secondary indexes with the rows of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse_engine.format.metadata_table.keys import split_secondary_keys
from lakehouse_engine.metadata_table.records.pairs import pair_keys
from lakehouse_engine.metadata_table.table import MetadataTable
from lakehouse_engine.model.keys import RECORD_KEY
from lakehouse_engine.read.arrow_scan import read_arrow
from lakehouse_engine.read.scan import plan_snapshot
from lakehouse_engine.verify.metadata_table.report import MetadataFinding, MetadataFindingKind, named


def check_secondary_index(table: MetadataTable, partition: str, column: str) -> tuple[int, list[MetadataFinding]]:
    """Number of entries of the index on `column`, and what is wrong with them. Reads the keys and the column of all rows.

    Raises as `read_arrow`.
    """
    indexed = table.with_prefixes(partition, [b""]).keys
    stored = pair_keys(read_arrow(plan_snapshot(table.data), columns=[RECORD_KEY, column]), column)
    missing = stored.filter(pc.invert(pc.is_in(stored, indexed)))
    gone = indexed.filter(pc.invert(pc.is_in(indexed, stored)))
    found = _findings(partition, missing, MetadataFindingKind.KEY_NOT_INDEXED, f"the index has not the value of {column} of these keys")
    return len(indexed), found + _findings(
        partition, gone, MetadataFindingKind.INDEXED_KEY_IS_GONE, f"the index has a value of {column} that these keys have not"
    )


def _findings(partition: str, pairs: pa.Array, kind: MetadataFindingKind, message: str) -> list[MetadataFinding]:
    _, keys = split_secondary_keys(pairs)
    return [MetadataFinding(kind, partition, "", f"{message}: {named(keys.to_pylist())}")] if len(keys) else []
