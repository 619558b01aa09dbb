"""Links to files of several places in one folder of the application, in directories whose names tell Spark the partition values.

Spark takes partition columns from directories below one folder, and skips files by them when it plans and in joins. Without links, merged
slices and base files, which lie in two places, would need a scan each, and planning a second scan takes longer than all else that a small
table costs.
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
"""Most base files that are linked: with more, a scan of their own is cheap compared with reading them."""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """`links` below `folder`."""

    folder: Path
    links: tuple[Path, ...]

    def hold(self) -> bool:
        """True if all are there: cleaners of temporary folders also delete those of sessions that live for weeks."""
        return all(map(os.path.lexists, self.links))

    def leads_nowhere(self) -> Path | None:
        """A link to a missing file, or None."""
        return next((link for link in self.links if not link.exists()), None)


LINKED: BySession[LinkedFiles] = BySession(10_000, lambda one: len(one.links))
"""Links of each application, which its sessions share."""


def linked(spark: SparkSession, key: Hashable, places: Sequence[tuple[Path, str]]) -> LinkedFiles | None:
    """Links to files, each in the directory given with it; made now, or found by `key`. None if there is no room."""
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
    """Links to merged slices and, unless they are many, to base files of the plan, with the base files that are linked. `known` identifies
    the base files.

    None if some directories tell no values, or there is no room.
    """
    paths = [*(file.path for file in files), *(one.stands_for for one in merged)]
    if not merged or not tells_values(plan.rules, paths):
        return None
    root = plan.storage.local_path()
    beside = files if root is not None and len(files) <= MOST else []
    places = [*((Path(root or "", file.path), parent_of(file.path)) for file in beside), *((one.path, one.partition) for one in merged)]
    found = linked(spark, (plan.storage.root, known if beside else (), tuple(merged)), places)
    return None if found is None else (found, beside)
