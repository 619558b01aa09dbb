"""Settings of a session that count for one step of planning, and those of its readers that do not count at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from pyspark.sql import SparkSession

AS_STORED = {
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
"""Options of readers, for what a session may not say of files with rows of a table: that those of one that cannot be read are left out
(what is read may be written anew), and that days before 1582 are others, of which logs would know nothing. What a file itself says of such
days counts.
"""

PARQUET = "org.apache.spark.sql.parquet"
"""The format of readers, by a name that is always Spark's own scan, which knows numbers of rows: what the short one stands for the session
says (`spark.sql.sources.useV1SourceList`).
"""

_ONE_AT_A_TIME = Lock()


def casts_refuse(spark: SparkSession) -> bool:
    """Whether a cast of the session refuses values that its type cannot hold, and does not make others of them."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


@contextmanager
def with_settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, which are put back then. Nobody else of this process changes some that way meanwhile."""
    with _ONE_AT_A_TIME:
        before = {key: str(spark.conf.get(key)) for key in given}
        for key, value in given.items():
            spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                spark.conf.set(key, value)
