"""Session settings that apply to one step of planning, and reader options that a session must not override."""

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
"""Reader options that a session must not override for table files: skipping unreadable files (what is read may be rewritten), and rebasing
of days before 1582, of which logs know nothing. A file's own metadata about such days counts.
"""

PARQUET = "org.apache.spark.sql.parquet"
"""Reader format by a name that always means Spark's own scan, with row numbers; the session decides what the short name means
(`spark.sql.sources.useV1SourceList`).
"""

_ONE_AT_A_TIME = Lock()


def casts_refuse(spark: SparkSession) -> bool:
    """True if the session's casts fail for values that the type cannot hold, instead of changing them."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


@contextmanager
def with_settings(spark: SparkSession, given: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, restored afterwards. No other thread of this process changes settings this way meanwhile."""
    with _ONE_AT_A_TIME:
        before = {key: str(spark.conf.get(key)) for key in given}
        for key, value in given.items():
            spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in before.items():
                spark.conf.set(key, value)
