"""Options of reads."""

from __future__ import annotations

from lakehouse_engine.options.base import Option, boolean

VERIFY_CHECKSUMS = Option(
    "lakehouse.read.verify.checksums",
    boolean,
    True,
    "Whether reads check the checksums of base files and logs, and refuse a damaged file; writes and table services always do.",
)
TRUST_PARTITION_PATHS = Option(
    "lakehouse.read.trust.partition.paths",
    boolean,
    False,
    "Whether filters skip partitions by their paths alone also where other writers may have left rows that belong elsewhere.",
)
