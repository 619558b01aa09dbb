"""Frames over data sent to a Spark session, with the expressions that use them, kept so that reading the same slices sends nothing again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import SliceEffect
from lakehouse_engine.spark.local_files import is_there

Sent = TypeVar("Sent")


class SentFrames(BySession[tuple[int, object]]):
    """Data sent to each session, at most `limit` bytes per session."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, lambda one: one[0])

    def get(
        self, spark: SparkSession, effects: Sequence[SliceEffect], names: Sequence[str], send: Callable[[], tuple[int, Sent]]
    ) -> tuple[int, Sent]:
        """Bytes sent, and what `send` made of exactly these effects, now or before; `names` distinguishes other results."""
        key = *names, *(effect.number for effect in effects)
        return cast(tuple[int, Sent], self.of(spark).find(key, send, lambda one: _holds(one[1])))


def _holds(sent: object) -> bool:
    return not isinstance(sent, DataFrame) or is_there(sent)


SENT = SentFrames(limit=256 * 1024 * 1024)
