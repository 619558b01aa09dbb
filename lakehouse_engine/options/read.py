"""Options of reads."""

from __future__ import annotations

from lakehouse_engine.options.base import Option, boolean, natural

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
LOGS_ON_DRIVER = Option(
    "lakehouse.read.logs.driver.max.bytes",
    natural,
    32 * 1024 * 1024,
    "Up to this size of all log files of a Spark read the driver decodes them, once for all statements; above, executors do in each query;"
    " 0: always executors.",
)
