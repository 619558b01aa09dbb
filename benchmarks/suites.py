"""Which contenders meet in which cells. A report has one table of each suite, with ratios to the suite's `reference`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from benchmarks.cells import LOGGED, Cell

_WITH_LOGS = (*LOGGED, Cell.UPSERT_SERIES)


@dataclass(frozen=True)
class Suite:
    """Contenders in the order in which they run (one that starts from another's table comes after it)."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    contenders: tuple[str, ...]
    reference: str

    @property
    def needs_series(self) -> bool:
        """Whether a cell has several batches."""
        return any(cell in _WITH_LOGS for cell in self.cells)

    def reduced(self, contenders: Collection[str], cells: Collection[str]) -> Suite:
        """With these contenders and cells only, as far as it has them."""
        return replace(
            self,
            contenders=tuple(name for name in self.contenders if name in contenders),
            cells=tuple(cell for cell in self.cells if cell.value in cells),
        )


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "cow",
            "copy-on-write",
            tuple(cell for cell in Cell if cell not in _WITH_LOGS),
            ("ours", "floor", "ours_arrow", "spark_parquet", "delta_rs", "hudi", "delta", "iceberg"),
            "ours",
        ),
        Suite(
            "mor",
            "merge-on-read",
            (Cell.UPSERT_1, Cell.UPSERT_10, Cell.SCAN_NARROW, Cell.SCAN_WIDE, *_WITH_LOGS),
            ("ours", "ours_mor", "ours_mor9", "floor_mor", "ours_mor_bucket", "iceberg_mor", "hudi_mor_bucket", "hudi_mor", "delta_dv"),
            "ours_mor",
        ),
    )
}
