"""What is measured, and what one measurement says. No third-party imports: every contender's interpreter loads this."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class Cell(str, Enum):
    """One operation that is timed. The values are the command line's names."""

    BULK_INSERT = "bulk_insert"
    BULK_INSERT_ARROW = "bulk_insert_arrow"
    UPSERT_1 = "upsert_1"
    UPSERT_10 = "upsert_10"
    UPSERT_NOOP = "upsert_noop"
    SCAN_NARROW = "scan_narrow"
    SCAN_WIDE = "scan_wide"
    SCAN_INCREMENTAL = "scan_incremental"
    SNAPSHOT_NARROW_COLD = "snapshot_narrow_cold"
    SNAPSHOT_NARROW = "snapshot_narrow"
    SNAPSHOT_WIDE_COLD = "snapshot_wide_cold"
    SNAPSHOT_WIDE = "snapshot_wide"
    READ_OPTIMIZED = "read_optimized"
    COMPACTION = "compaction"
    UPSERT_SERIES = "upsert_series"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Cell.BULK_INSERT: "bulk insert",
    Cell.BULK_INSERT_ARROW: "bulk insert, Arrow/Parquet input",
    Cell.UPSERT_1: "upsert 1 %",
    Cell.UPSERT_10: "upsert 10 %",
    Cell.UPSERT_NOOP: "upsert of nothing",
    Cell.SCAN_NARROW: "scan 2 columns",
    Cell.SCAN_WIDE: "scan all columns",
    Cell.SCAN_INCREMENTAL: "incremental scan",
    Cell.SNAPSHOT_NARROW_COLD: "snapshot 2 columns, cold",
    Cell.SNAPSHOT_NARROW: "snapshot 2 columns, warm",
    Cell.SNAPSHOT_WIDE_COLD: "snapshot all columns, cold",
    Cell.SNAPSHOT_WIDE: "snapshot all columns, warm",
    Cell.READ_OPTIMIZED: "read-optimized 2 columns",
    Cell.COMPACTION: "compaction",
    Cell.UPSERT_SERIES: "each of twenty upserts 1 %",
}

LOADS = (Cell.BULK_INSERT, Cell.BULK_INSERT_ARROW)
"""Cells that make the table."""

UPSERTS = {Cell.UPSERT_1: "updates-1", Cell.UPSERT_10: "updates-10"}
"""Cells that change the table, and the folder of the prepared batch that each applies."""


SNAPSHOTS = {
    Cell.SNAPSHOT_NARROW_COLD: "narrow",
    Cell.SNAPSHOT_NARROW: "narrow",
    Cell.SNAPSHOT_WIDE_COLD: "wide",
    Cell.SNAPSHOT_WIDE: "wide",
}
"""Cells that read base files and logs, and the query of each."""

LOGGED = (*SNAPSHOTS, Cell.READ_OPTIMIZED, Cell.COMPACTION)
"""Cells that start from a table with logs: its load and five upserts of 1 %."""

LOGGED_UPSERTS, SERIES_UPSERTS = 5, 20
"""Upserts before the cells of `LOGGED`; upserts in a row of `UPSERT_SERIES`."""


class Status(str, Enum):
    """How a cell ended. Only `OK` has times."""

    OK = "ok"
    ERROR = "error"
    ABSENT = "absent"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Peak:
    """The largest resident memory seen, in bytes: of the whole process tree, of the contender's Python process, of its JVM."""

    tree: int = 0
    driver: int = 0
    jvm: int = 0

    def merge(self, other: Peak) -> Peak:
        return Peak(max(self.tree, other.tree), max(self.driver, other.driver), max(self.jvm, other.jvm))


@dataclass(frozen=True)
class Measurement:
    """One contender in one cell.

    `seconds` has one entry a repeat (warm-up left out), of a series one an upsert. `spark_jobs` counts one run, -1 where there is no Spark.
    `files_written` and `bytes_written` are the data files (logs, deletion vectors included) that the operation added.
    """

    contender: str
    cell: Cell
    status: Status
    note: str = ""
    seconds: tuple[float, ...] = ()
    peak: Peak = field(default_factory=Peak)
    spark_jobs: int = -1
    files_written: int = 0
    bytes_written: int = 0

    @property
    def median(self) -> float:
        """Seconds. Raises `ValueError` for a cell without a time."""
        if self.status is not Status.OK:
            raise ValueError(f"{self.contender}/{self.cell.value} has no time: {self.status.value}: {self.note}")
        return statistics.median(self.seconds)

    @property
    def growth(self) -> float:
        """Of a series: the median of its last three times to that of its first three. Raises `ValueError` for a cell without a time."""
        if self.status is not Status.OK:
            raise ValueError(f"{self.contender}/{self.cell.value} has no time: {self.status.value}: {self.note}")
        return statistics.median(self.seconds[-3:]) / statistics.median(self.seconds[:3])

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "cell": self.cell.value, "status": self.status.value}
