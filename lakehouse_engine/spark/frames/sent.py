"""Frames over data that was sent to a Spark session, kept with it: reading the same slices again sends nothing again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from lakehouse_engine.spark.frames.effects import SliceEffect

Sent = TypeVar("Sent")


@dataclass(slots=True)
class _Session:
    """What was sent to one session, least recently used first; each with the effects that it was made of, whose ids are its key."""

    kept: OrderedDict[tuple[object, ...], tuple[Sequence[SliceEffect], object]] = field(default_factory=OrderedDict)
    size: int = 0


@dataclass(slots=True)
class SentFrames:
    """What was sent to each session, the least recently used dropped above `limit` bytes a session. Thread-safe.

    A frame that was dropped here goes on working for who holds it.
    """

    limit: int
    _sessions: WeakKeyDictionary[SparkSession, _Session] = field(default_factory=WeakKeyDictionary)
    _lock: Lock = field(default_factory=Lock)

    def get(self, spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str], send: Callable[[], Sent]) -> Sent:
        """What `send` made of these very effects, now or before; `names` tell apart what else was made of them."""
        key = (*names, *map(id, effects))
        with self._lock:
            session = self._sessions.setdefault(spark, _Session())
            if key in session.kept:
                session.kept.move_to_end(key)
                return cast(Sent, session.kept[key][1])
        sent = send()
        size = sum(effect.nbytes for effect in effects)
        with self._lock:
            if size <= self.limit and key not in session.kept:
                session.kept[key] = (effects, sent)
                session.size += size
                while session.size > self.limit:
                    _, (dropped, _) = session.kept.popitem(last=False)
                    session.size -= sum(effect.nbytes for effect in dropped)
        return sent


SENT = SentFrames(limit=256 * 1024 * 1024)
