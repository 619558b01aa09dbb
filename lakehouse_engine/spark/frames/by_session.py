"""Caches per session, each with a limit."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakehouse_engine.cache import BoundedCache, Value

_KEPT = "_lakehouse_kept"


def analyzed_bytes(columns: int, files: int = 0) -> int:
    """Approximate bytes that the JVM holds for an analysed frame with that many columns and files: megabytes for a thousand columns."""
    return columns * 2048 + files * 1024


class BySession(Generic[Value]):
    """A `BoundedCache` per session. Thread-safe. An evicted frame keeps working for its holders.

    It is attached to the session: as the key of a global cache, a session would be kept alive by its own frames.
    """

    def __init__(self, limit: int, weight: Callable[[Value], int]) -> None:
        self._limit, self._weight, self._lock = limit, weight, Lock()

    def of(self, spark: SparkSession | SparkContext) -> BoundedCache[Value]:
        """Cache of this session, or one that all sessions of an application share."""
        with self._lock:
            kept: dict[Any, BoundedCache[Value]] = vars(spark).setdefault(_KEPT, {})
            return kept.setdefault(self, BoundedCache(self._limit, self._weight))
