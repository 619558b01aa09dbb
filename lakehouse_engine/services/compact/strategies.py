"""Strategies that select which of the candidate slices one compaction takes (Hudi `org.apache.hudi.table.action.compact.strategy`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Protocol

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.plans import HoodieCompactionOperation
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.options.services import COMPACTION_STRATEGY

TOTAL_IO_READ_MB = "TOTAL_IO_READ_MB"
TOTAL_IO_WRITE_MB = "TOTAL_IO_WRITE_MB"
TOTAL_IO_MB = "TOTAL_IO_MB"
TOTAL_LOG_FILES = "TOTAL_LOG_FILES"
TOTAL_LOG_FILES_SIZE = "TOTAL_LOG_FILES_SIZE"

Operations = Sequence[HoodieCompactionOperation]

_DAY = re.compile(r"(\d{4})[-/]?(\d{2})[-/]?(\d{2})")


class CompactionStrategy(Protocol):
    """Selects, from all candidates, the operations of one compaction, in the order of its plan."""

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]: ...


@dataclass(frozen=True, slots=True)
class UnBounded:
    """All candidates."""

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]:
        return list(candidates)


@dataclass(frozen=True, slots=True)
class BoundedIO:
    """Candidates in order, until `hoodie.compaction.target.io` megabytes are read and written; at least one."""

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]:
        chosen, left = [], float(options.target_io_mb)
        for operation in candidates:
            if left <= 0:
                break
            left -= _metric(operation, TOTAL_IO_MB)
            chosen.append(operation)
        return chosen


@dataclass(frozen=True, slots=True)
class LogFileSizeBased:
    """Slices with at least `hoodie.compaction.logfile.size.threshold` bytes of logs, those with the most first, bounded as by `BoundedIO`.
    """

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]:
        large = [operation for operation in candidates if _metric(operation, TOTAL_LOG_FILES_SIZE) >= options.log_size_threshold]
        ordered = sorted(large, key=lambda operation: _metric(operation, TOTAL_LOG_FILES_SIZE), reverse=True)
        return BoundedIO().select(ordered, options, today)


@dataclass(frozen=True, slots=True)
class DayBased:
    """Slices of the newest `hoodie.compaction.daybased.target.partitions` days that have any. Partitions must be dates."""

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]:
        days = sorted({_day(operation) for operation in candidates}, reverse=True)[: options.day_partitions]
        return _newest_first(operation for operation in candidates if _day(operation) in days)


@dataclass(frozen=True, slots=True)
class BoundedPartitionAware:
    """Slices of the last `hoodie.compaction.daybased.target.partitions` days, counted from today."""

    def select(self, candidates: Operations, options: CompactionOptions, today: date) -> list[HoodieCompactionOperation]:
        first = today - timedelta(days=options.day_partitions)
        return _newest_first(operation for operation in candidates if _day(operation) >= first)


STRATEGIES: dict[str, CompactionStrategy] = {
    "LogFileSizeBasedCompactionStrategy": LogFileSizeBased(),
    "BoundedIOCompactionStrategy": BoundedIO(),
    "DayBasedCompactionStrategy": DayBased(),
    "BoundedPartitionAwareCompactionStrategy": BoundedPartitionAware(),
    "UnBoundedCompactionStrategy": UnBounded(),
}
"""Strategies by the last part of Hudi's class names, which the option is checked against (`COMPACTION_STRATEGIES`)."""


def _metric(operation: HoodieCompactionOperation, name: str) -> float:
    return (operation.metrics or {}).get(name, 0.0)


def _newest_first(operations: Iterable[HoodieCompactionOperation]) -> list[HoodieCompactionOperation]:
    return sorted(operations, key=_day, reverse=True)


def _day(operation: HoodieCompactionOperation) -> date:
    """The day of a partition: `2026/11/21`, `2026-11-21` or `20261121`, also as `day=2026-11-21` and `year=2026/month=11/day=21`."""
    path = operation.partition_path or ""
    values = "/".join(level.rpartition("=")[2] for level in path.split("/"))
    match = _DAY.fullmatch(values)
    try:
        if match is None:
            raise ValueError("expected yyyy/MM/dd")
        return date(*map(int, match.groups()))
    except ValueError as error:
        raise OptionError(
            f"the partition {path!r} is no day ({error}), which compaction by days needs; choose another {COMPACTION_STRATEGY.key}"
        ) from error
