"""Files of several places as links in one folder of the application, in directories whose names say what Spark is to know of them.

Spark takes partition columns from directories below one folder, and skips files by them when it plans and in joins. So it would of merged
slices and base files in a scan of each of the two places, and to plan a second one takes longer than all else that a small table costs.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.abilities import abilities_of
from lakehouse_engine.spark.frames.by_session import BySession
from lakehouse_engine.spark.frames.logged.merged_files import MergedFile
from lakehouse_engine.spark.frames.partitions import tells_values
from lakehouse_engine.storage.paths import parent_of

MOST = 64
"""Base files that are linked: of more a scan of their own is cheap beside what reading them costs."""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """`links` below `folder`."""

    folder: Path
    links: tuple[Path, ...]

    def hold(self) -> bool:
        """Whether all are there: who cleans folders for temporary files takes those of sessions that live for weeks."""
        return all(map(os.path.lexists, self.links))

    def leads_nowhere(self) -> Path | None:
        """A link to a file that is not there, if there is one."""
        return next((link for link in self.links if not link.exists()), None)


LINKED: BySession[LinkedFiles] = BySession(10_000, lambda one: len(one.links))
"""Of each application, whose sessions share them."""


def linked(spark: SparkSession, key: Hashable, places: Sequence[tuple[Path, str]]) -> LinkedFiles | None:
    """Links to files, each in the directory that is given with it, made now or before; `key` tells them from others. None where there is no
    room.
    """
    kept = LINKED.of(spark.sparkContext)
    found = kept.get(key)
    if found is None or not found.hold():
        folder = abilities_of(spark).links(places)
        if folder is None:
            return None
        found = LinkedFiles(folder, tuple(folder / directory / path.name for path, directory in places))
        kept.replace(key, found)
    return found


def linked_partitions(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Hashable, merged: Sequence[MergedFile]
) -> tuple[LinkedFiles, Sequence[BaseFile]] | None:
    """Links of merged slices, and of base files of the plan (`known` tells them from others) unless they are many; those that are linked.
    None where directories of some tell nothing, or there is no room.
    """
    paths = [*(file.path for file in files), *(one.stands_for for one in merged)]
    if not merged or not tells_values(plan.rules, paths):
        return None
    root = plan.storage.local_path()
    beside = files if root is not None and len(files) <= MOST else []
    places = [*((Path(root or "", file.path), parent_of(file.path)) for file in beside), *((one.path, one.partition) for one in merged)]
    found = linked(spark, (plan.storage.root, known if beside else (), tuple(merged)), places)
    return None if found is None else (found, beside)
