"""The goals that the engine sets itself, judged on measurements. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.cells import Cell, Measurement, Status

Results = Mapping[tuple[str, Cell], Measurement]
_GIB = 1024**3


@dataclass(frozen=True)
class Goal:
    """One goal, what was measured, and whether that is enough."""

    text: str
    measured: str
    met: bool


@dataclass(frozen=True)
class _Ratio:
    """`top`'s median over `bottom`'s stays at or under (`at_most`) or at or above (not `at_most`) `limit`."""

    text: str
    top: tuple[str, Cell]
    bottom: tuple[str, Cell]
    limit: float
    at_most: bool

    def judge(self, results: Results) -> Goal | None:
        top, bottom = (results.get(key) for key in (self.top, self.bottom))
        if top is None or bottom is None or Status.OK is not top.status or Status.OK is not bottom.status:
            return None
        value = top.median / bottom.median
        return Goal(self.text, f"{value:.2f}x", value <= self.limit if self.at_most else value >= self.limit)


def _faster(what: str, cell: Cell, ours: str, other: str, title: str, limit: float) -> _Ratio:
    return _Ratio(f"{what}: at least {limit:g}x faster than {title}", (other, cell), (ours, cell), limit, False)


_OURS_BULK, _OURS_ARROW = ("ours", Cell.BULK_INSERT), ("ours", Cell.BULK_INSERT_ARROW)
_OURS_UPSERT = ("ours", Cell.UPSERT_1)
_RATIOS = (
    _Ratio("upsert 1 %: at most 1.3x the floor on the same files", _OURS_UPSERT, ("floor", Cell.UPSERT_1), 1.3, True),
    _Ratio("upsert 1 %: at least 8x faster than Hudi", ("hudi", Cell.UPSERT_1), _OURS_UPSERT, 8, False),
    _Ratio("upsert 1 %: at least 2.5x faster than Iceberg", ("iceberg", Cell.UPSERT_1), _OURS_UPSERT, 2.5, False),
    _Ratio("bulk insert: at most 1.2x plain Spark", _OURS_BULK, ("spark_parquet", Cell.BULK_INSERT), 1.2, True),
    _Ratio("bulk insert from Arrow: at least 2x faster than plain Spark", ("spark_parquet", Cell.BULK_INSERT), _OURS_ARROW, 2, False),
    _Ratio("scan 2 columns: at most 1.05x plain Parquet", ("ours", Cell.SCAN_NARROW), ("spark_parquet", Cell.SCAN_NARROW), 1.05, True),
    _Ratio("scan all columns: at most 1.05x plain Parquet", ("ours", Cell.SCAN_WIDE), ("spark_parquet", Cell.SCAN_WIDE), 1.05, True),
)

_MOR, _BUCKET, _COW = "ours_mor", "ours_mor_bucket", "ours"
_MOR_RATIOS = (
    _faster("upsert 1 %", Cell.UPSERT_1, _MOR, "hudi_mor", "Hudi with its default index", 8),
    _faster("upsert 1 %", Cell.UPSERT_1, _MOR, "hudi_mor_bucket", "Hudi with a bucket index", 2.2),
    _faster("upsert 1 %", Cell.UPSERT_1, _MOR, "iceberg_mor", "Iceberg", 2.2),
    _Ratio("upsert 1 %: faster with a bucket index than with the default one", (_MOR, Cell.UPSERT_1), (_BUCKET, Cell.UPSERT_1), 1, False),
    _faster("upsert 10 %", Cell.UPSERT_10, _MOR, "hudi_mor", "Hudi with its default index", 4),
    _faster("snapshot of 2 columns, cold", Cell.SNAPSHOT_NARROW_COLD, _MOR, "hudi_mor", "Hudi", 6),
    _faster("snapshot of all columns, cold", Cell.SNAPSHOT_WIDE_COLD, _MOR, "hudi_mor", "Hudi", 6),
    _Ratio(
        "snapshot of 2 columns, warm: at most 2x the copy-on-write table",
        (_MOR, Cell.SNAPSHOT_NARROW),
        (_COW, Cell.SCAN_NARROW),
        2,
        True,
    ),
    _Ratio(
        "snapshot of all columns, warm: at most 1.5x the copy-on-write table",
        (_MOR, Cell.SNAPSHOT_WIDE),
        (_COW, Cell.SCAN_WIDE),
        1.5,
        True,
    ),
    _faster("compaction", Cell.COMPACTION, _MOR, "hudi_mor", "Hudi", 8),
    _Ratio("compaction: at most 1.5x the floor on the same files", (_MOR, Cell.COMPACTION), ("floor_mor", Cell.COMPACTION), 1.5, True),
)
_GROWTH_LIMIT = 1.3


def judge(results: Results) -> list[Goal]:
    """Every goal whose measurements are there."""
    goals = [ratio.judge(results) for ratio in (*_RATIOS, *_MOR_RATIOS)]
    goals += [_steady(results, name, index) for name, index in ((_MOR, "default index"), (_BUCKET, "bucket index"))]
    goals.append(_limit(results, Cell.UPSERT_1, "upsert 1 %: at most three Spark jobs", _jobs_at_most(3)))
    goals.append(_limit(results, Cell.UPSERT_NOOP, "upsert of nothing: no Spark job", _jobs_at_most(0)))
    goals.append(_limit(results, Cell.UPSERT_1, "upsert 1 %: driver process under 2 GiB", _driver_under_2_gib))
    return [goal for goal in goals if goal is not None]


def _steady(results: Results, contender: str, index: str) -> Goal | None:
    """Medians of three upserts at each end: one of them alone would judge the machine's noise."""
    item = results.get((contender, Cell.UPSERT_SERIES))
    if item is None or item.status is not Status.OK:
        return None
    text = f"twenty upserts of 1 %, {index}: the last three at most {_GROWTH_LIMIT}x the first three"
    return Goal(text, f"{item.growth:.2f}x", item.growth <= _GROWTH_LIMIT)


def _limit(results: Results, cell: Cell, text: str, check: Callable[[Measurement], tuple[str, bool] | None]) -> Goal | None:
    item = results.get(("ours", cell))
    if item is None or item.status is not Status.OK:
        return None
    found = check(item)
    return None if found is None else Goal(text, *found)


def _jobs_at_most(count: int) -> Callable[[Measurement], tuple[str, bool] | None]:
    return lambda item: None if item.spark_jobs < 0 else (f"{item.spark_jobs}", item.spark_jobs <= count)


def _driver_under_2_gib(item: Measurement) -> tuple[str, bool] | None:
    """Not judged where memory could not be measured."""
    if item.peak.driver == 0:
        return None
    return f"{item.peak.driver / _GIB:.2f} GiB Python, {item.peak.jvm / _GIB:.2f} GiB JVM", item.peak.driver < 2 * _GIB
