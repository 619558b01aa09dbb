"""Options of reads."""

from __future__ import annotations

from lakehouse_engine.options.base import Option, boolean, natural_size, one_of

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
    natural_size,
    32 * 1024 * 1024,
    "Up to this size of all log files of a Spark read the driver decodes them, once for all statements; above, executors do in each query;"
    " 0: always executors.",
)
READ_FILES = Option(
    "lakehouse.read.files",
    one_of("AUTO", "SPARK", "ENGINE"),
    "AUTO",
    "Who opens the files of a Spark read: SPARK its own Parquet reader, which for an object store needs jars and settings of its own;"
    " ENGINE the driver and tasks of the engine, through the table's storage; AUTO Spark for directories, the engine for object stores.",
)
FILES_ON_DRIVER = Option(
    "lakehouse.read.files.driver.max.bytes",
    natural_size,
    8 * 1024 * 1024,
    "Up to this size of all files of a read that the engine does for Spark the driver reads them, once for all statements; above, executors"
    " do in each query; 0: always executors.",
)
