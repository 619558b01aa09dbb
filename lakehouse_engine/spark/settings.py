"""Settings of a session that count for one step of planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from pyspark.sql import SparkSession

_ONE_AT_A_TIME = Lock()


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
