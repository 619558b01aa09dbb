"""Blocks of logs as files of a session, written once for it: Spark reads them as it reads base files, and no row is decoded here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from pyspark.sql import SparkSession

from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.effects import SliceEffect, ThinnedFile
from lakehouse_engine.spark.local_files import spark_path

BLOCKS_FROM = 256 * 1024
"""Bytes that blocks of a slice have at least, on average: a file costs each query some milliseconds, however small, and decoding it once
thirty a megabyte."""


_WRITING = Lock()


@dataclass(frozen=True, slots=True)
class LoggedFiles:
    """The blocks of a slice of a partition: `folder`, as Spark is told of it, has these files and no others."""

    partition: str
    folder: str
    files: tuple[ThinnedFile, ...]


FILES: BySession[LoggedFiles] = BySession(100_000, lambda one: len(one.files))
"""Of each application, whose sessions share them, by the numbers of effects: as long as they are known no block is written again."""


def logged_files(spark: SparkSession, effects: Sequence[SliceEffect]) -> list[LoggedFiles] | None:
    """Of the effects that have blocks; None where there is no room for some."""
    found = [_found(spark, effect) for effect in effects if effect.blocks]
    written = [one for one in found if one is not None]
    return written if len(written) == len(found) else None


def in_files(spark: SparkSession, effect: SliceEffect) -> bool:
    """Whether the blocks of an effect are files of the application."""
    return _known(spark, effect) is not None


def _known(spark: SparkSession, effect: SliceEffect) -> LoggedFiles | None:
    found = FILES.of(spark.sparkContext).get(effect.number)
    # Who cleans folders for temporary files takes those of sessions that live for weeks.
    return found if found is not None and all(os.path.exists(file.path) for file in found.files) else None


def _found(spark: SparkSession, effect: SliceEffect) -> LoggedFiles | None:
    with _WRITING:  # not twice by two threads: room is short
        found = _known(spark, effect)
        if found is None:
            found = _written(spark, effect)
            if found is not None:
                FILES.of(spark.sparkContext).replace(effect.number, found)
        return found


def _written(spark: SparkSession, effect: SliceEffect) -> LoggedFiles | None:
    paths = abilities_of(spark).files([block.content for block in effect.blocks])
    if paths is None:
        return None
    files = (ThinnedFile(str(path), len(block.content), block.rows, block.gone) for path, block in zip(paths, effect.blocks, strict=True))
    return LoggedFiles(effect.partition, spark_path(paths[0].parent), tuple(files))
