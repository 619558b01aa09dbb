"""What is kept with a session, up to a limit for each."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from lakehouse_engine.cache import BoundedCache, Value


class BySession(Generic[Value]):
    """A `BoundedCache` of each session. Thread-safe.

    What drops out of one, as a frame, goes on working for who holds it.
    """

    def __init__(self, limit: int, weight: Callable[[Value], int]) -> None:
        self._limit, self._weight = limit, weight
        self._sessions: WeakKeyDictionary[SparkSession, BoundedCache[Value]] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, spark: SparkSession) -> BoundedCache[Value]:
        """That of one session, which it has from here on."""
        with self._lock:
            return self._sessions.setdefault(spark, BoundedCache(self._limit, self._weight))
