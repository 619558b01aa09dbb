"""What is kept with a session, up to a limit for each."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakehouse_engine.cache import BoundedCache, Value

_KEPT = "_lakehouse_kept"


def analyzed_bytes(columns: int, files: int = 0) -> int:
    """About as many bytes as the JVM has of so many columns and files of a frame that it has analyzed: of a thousand columns megabytes."""
    return columns * 2048 + files * 1024


class BySession(Generic[Value]):
    """A `BoundedCache` of each session. Thread-safe. What drops out of one, as a frame, goes on working for who holds it.

    It hangs on the session: a frame knows its session, so that one which is the key of what is kept elsewhere would never go.
    """

    def __init__(self, limit: int, weight: Callable[[Value], int]) -> None:
        self._limit, self._weight, self._lock = limit, weight, Lock()

    def of(self, spark: SparkSession | SparkContext) -> BoundedCache[Value]:
        """That of one session, or of what all sessions of an application share, which it has from here on."""
        with self._lock:
            kept: dict[Any, BoundedCache[Value]] = vars(spark).setdefault(_KEPT, {})
            return kept.setdefault(self, BoundedCache(self._limit, self._weight))
