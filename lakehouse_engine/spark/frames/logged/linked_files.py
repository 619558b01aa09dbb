"""Merged slices and base files as links in one folder of the application, in directories that are called as their partitions.

Spark takes partition columns from directories below one folder, and skips files by them when it plans and in joins. So it would in a scan
of each of the two places, and to plan a second one takes longer than all else that a small table costs.
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

_MOST = 64
"""Base files that are linked: of more a scan of their own is cheap beside what reading them costs."""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """`links` below `folder`; `bases`: base files are among them."""

    folder: Path
    links: tuple[Path, ...]
    bases: bool

    def hold(self) -> bool:
        """Whether all are there: who cleans folders for temporary files takes those of sessions that live for weeks."""
        return all(map(os.path.lexists, self.links))


LINKED: BySession[LinkedFiles] = BySession(10_000, lambda one: len(one.links))
"""Of each application, whose sessions share them."""


def linked_files(
    spark: SparkSession, plan: ScanPlan, files: Sequence[BaseFile], known: Hashable, merged: Sequence[MergedFile]
) -> LinkedFiles | None:
    """Links of merged slices, and of base files of the plan (`known` tells them from others) unless they are many. None where directories
    of some tell nothing, or there is no room.
    """
    paths = [*(file.path for file in files), *(one.stands_for for one in merged)]
    if not merged or not tells_values(plan.rules, paths):
        return None
    root = plan.storage.local_path()
    beside = files if root is not None and len(files) <= _MOST else []
    key = plan.storage.root, known if beside else (), tuple(merged)
    kept = LINKED.of(spark.sparkContext)
    found = kept.get(key)
    if found is None or not found.hold():
        places = [*((Path(root or "", file.path), parent_of(file.path)) for file in beside), *((one.path, one.partition) for one in merged)]
        folder = abilities_of(spark).links(places)
        if folder is None:
            return None
        found = LinkedFiles(folder, tuple(folder / directory / path.name for path, directory in places), bool(beside))
        kept.replace(key, found)
    return found
