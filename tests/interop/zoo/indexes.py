"""Every index, those of the metadata table included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.interop.zoo.kind import FAST, HISTORY, MOR, PARTITIONED, Kind, history, not_written


def of_index(name: str, shown: str, options: Mapping[str, str], ours: Mapping[str, Any] | None = None, **more: Any) -> Kind:
    every = {**PARTITIONED, **options}
    # Buckets are never small files: every update goes to logs.
    steps = HISTORY if BUCKETS.items() <= options.items() else history(every)
    return Kind(name=f"index-{name}", shown=f"index: {shown}", steps=steps, options=every, ours=ours or {}, **more)


def chosen(kind: str) -> dict[str, str]:
    return {"hoodie.index.type": kind}


BUCKETS = {**chosen("BUCKET"), "hoodie.bucket.index.num.buckets": "3"}
CONSISTENT = {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
COLUMN_STATS = {"hoodie.metadata.index.column.stats.enable": "true"}
BLOOM_FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.bloom.index.use.metadata": "true"}
RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true", **chosen("RECORD_INDEX")}

KINDS = (
    *(
        of_index(f"{name.lower().replace('_', '-')}{suffix}", f"{name}{shown}", {**chosen(name), **FAST, **options})
        for name in ("BLOOM", "GLOBAL_BLOOM", "SIMPLE", "GLOBAL_SIMPLE")
        for suffix, shown, options in (("", "", {}), ("-mor", ", merge-on-read", MOR))
    ),
    of_index("bucket", "BUCKET", {**BUCKETS, **FAST}, BUCKETS),
    of_index("bucket-mor", "BUCKET, merge-on-read", {**BUCKETS, **FAST, **MOR}, BUCKETS),
    of_index(
        "bucket-untold",
        "BUCKET, of which we are told nothing",
        {**BUCKETS, **FAST},
        expected=not_written("look like those of Hudi's bucket index", "name the index and its number of buckets in the write, as above"),
    ),
    of_index(
        "consistent",
        "BUCKET with consistent hashing, merge-on-read",
        {**CONSISTENT, **FAST, **MOR},
        expected=not_written("consistent hashing buckets .* write it with Hudi", "write with Hudi, or copy to a table with simple buckets"),
    ),
    of_index("record", "RECORD_INDEX", RECORD_INDEX),
    of_index("record-mor", "RECORD_INDEX, merge-on-read", {**RECORD_INDEX, **MOR}),
    of_index("column-stats", "metadata table with column stats", COLUMN_STATS),
    of_index("column-stats-mor", "metadata table with column stats, merge-on-read", {**COLUMN_STATS, **MOR}),
    of_index("bloom-metadata", "BLOOM from the metadata table", {**BLOOM_FILTERS, **chosen("BLOOM")}),
    of_index("everything-mor", "metadata table with every index, merge-on-read", {**COLUMN_STATS, **BLOOM_FILTERS, **RECORD_INDEX, **MOR}),
)
