"""Delta Lake with deletion vectors: updated rows are marked in them and written to new files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from benchmarks.contenders.delta_spark import DeltaSpark


class DeltaDv(DeltaSpark):
    extra_settings: ClassVar[dict[str, str]] = {
        **DeltaSpark.extra_settings,
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
        # Every file with a deletion vector is rewritten, however few rows are deleted in it.
        "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0",
    }

    def compact(self, *, table: str) -> None:
        """OPTIMIZE, not REORG ... APPLY (PURGE): that ends with a NoSuchMethodError of Delta 4.0.0 on Spark 4.0.1."""
        self.spark.sql(f"optimize delta.`{table}`").collect()

    def deltas(self, *, table: str) -> int:
        return len(files_with_vectors(table))


def files_with_vectors(table: str) -> set[str]:
    """The data files that have a deletion vector now: the log's JSON commits read in order (none is ever removed here)."""
    marked: set[str] = set()
    for commit in sorted((Path(table) / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        marked -= {action["remove"]["path"] for action in actions if "remove" in action}
        marked |= {action["add"]["path"] for action in actions if action.get("add", {}).get("deletionVector")}
    return marked


CONTENDER = DeltaDv
