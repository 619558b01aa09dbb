"""What the harness asks of a contender. No third-party imports.

`table` is always the folder of the table, as text, two levels below a folder that only this table uses
(`<folder>/bench/orders`), so that contenders with a warehouse have one. `source` is a folder of Parquet files.
"""

from __future__ import annotations

from typing import Any, Protocol

CALLS = (
    "start",
    "bulk_insert",
    "bulk_insert_arrow",
    "upsert",
    "upsert_noop",
    "version",
    "scan",
    "scan_incremental",
    "scan_read_optimized",
    "compact",
    "deltas",
    "savepoint",
    "restore",
    "export",
)
"""The calls that a worker takes."""

KEY = "id"
ORDERING = "updated_at"
BUCKETS = 8
"""Of every contender with a bucket index."""


class Contender(Protocol):
    """One way to keep a table. Methods that a contender's `absent` cells exclude may be missing."""

    def start(self, *, memory: str, scratch: str, jars: list[str]) -> dict[str, str]:
        """Get ready and warm; returns versions to print."""

    def bulk_insert(self, *, table: str, source: str) -> None:
        """Make the table from a Spark DataFrame over `source`."""

    def bulk_insert_arrow(self, *, table: str, source: str) -> None:
        """Make the table from `source` read by Arrow."""

    def upsert(self, *, table: str, source: str) -> None:
        """Replace the rows whose `id` is in `source`, add the others."""

    def upsert_noop(self, *, table: str, source: str) -> None:
        """Upsert a batch of the same columns without rows."""

    def version(self, *, table: str) -> str:
        """A name of the table's present state, for `scan_incremental`."""

    def scan(self, *, table: str, query: str) -> list[Any]:
        """The values of `queries.QUERIES[query]` over the table, each through `queries.plain`."""

    def scan_incremental(self, *, table: str, since: str) -> list[Any]:
        """The values of the narrow query over the rows that changed after `since`."""

    def scan_read_optimized(self, *, table: str, query: str) -> list[Any]:
        """The same over the base files alone."""

    def compact(self, *, table: str) -> None:
        """Fold everything that upserts left beside the base files into base files."""

    def deltas(self, *, table: str) -> int:
        """How many logs, delete files or deletion vectors a reader has to apply to the base files now."""

    def savepoint(self, *, table: str) -> str:
        """Take a savepoint of the table's newest state; returns its name for `restore`."""

    def restore(self, *, table: str, savepoint: str) -> None:
        """Bring the table back to the savepoint."""

    def export(self, *, table: str, target: str) -> None:
        """Write the table's user columns as Parquet files into the new folder `target`, read as any reader would."""

    def jobs_started(self) -> int:
        """A running number of Spark jobs (this call takes one); -1 where there is no Spark."""

    def stop(self) -> None:
        """Free what `start` took."""
