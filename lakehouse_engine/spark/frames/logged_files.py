"""Blocks of logs as files of a session, written once for it: Spark reads them as it reads base files, and no row is decoded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.effects import SliceEffect, ThinnedFile
from lakehouse_engine.spark.frames.sent import SENT
from lakehouse_engine.spark.local_files import spark_path

BLOCKS_FROM = 256 * 1024
"""Bytes that blocks of a slice have at least, on average: a file costs each query some milliseconds, however small, and decoding it once
thirty a megabyte."""


@dataclass(frozen=True, slots=True)
class LoggedFiles:
    """The blocks of a slice: `folder`, as Spark is told of it, has these files and no others."""

    folder: str
    files: tuple[ThinnedFile, ...]


def logged_files(spark: SparkSession, effects: Sequence[SliceEffect]) -> list[LoggedFiles] | None:
    """Of the effects that have blocks; None where there is no room for some."""
    found = [SENT.get(spark, [effect], ["blocks"], partial(_written, spark, effect)) for effect in effects if effect.blocks]
    written = [one for one in found if one is not None]
    return written if len(written) == len(found) else None


def _written(spark: SparkSession, effect: SliceEffect) -> LoggedFiles | None:
    paths = abilities_of(spark).files([block.content for block in effect.blocks])
    if paths is None:
        return None
    files = (ThinnedFile(str(path), len(block.content), block.rows, block.gone) for path, block in zip(paths, effect.blocks, strict=True))
    return LoggedFiles(spark_path(paths[0].parent), tuple(files))
