"""Records of `bloom_filters`, the filters of base files (Hudi `HoodieMetadataBloomFilter`), and of `secondary_index_*`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakehouse_engine.format.metadata_table.payload import BLOOM, SECONDARY, RecordType
from lakehouse_engine.format.metadata_table.schema import payload_schema


def bloom_filter_payloads(kinds: pa.Array, instants: pa.Array, texts: pa.Array) -> pa.Table:
    """One payload per file: kind and text of its filter as in the file's footer, and the instant of the file."""
    kind = payload_schema().field(BLOOM).type
    deleted = pa.repeat(False, len(kinds))
    struct = pa.StructArray.from_arrays([kinds, instants, texts.cast(pa.binary()), deleted], fields=list(kind))
    return pa.table({"type": pa.array(np.full(len(kinds), RecordType.BLOOM_FILTERS, np.int32)), BLOOM: struct})


def secondary_index_payload(count: int) -> pa.Table:
    """Payloads for `count` entries of a secondary index, whose keys hold all the information."""
    kind = payload_schema().field(SECONDARY).type
    struct = pa.StructArray.from_arrays([pa.repeat(False, count)], fields=list(kind))
    return pa.table({"type": pa.array(np.full(count, RecordType.SECONDARY_INDEX, np.int32)), SECONDARY: struct})
