from __future__ import annotations

from datetime import date

import pytest

from lakehouse_engine.errors import OptionError
from lakehouse_engine.model.plans import HoodieCompactionOperation
from lakehouse_engine.options import CompactionOptions
from lakehouse_engine.options.services import COMPACTION_STRATEGIES
from lakehouse_engine.services.compact.strategies import STRATEGIES, TOTAL_IO_MB, TOTAL_LOG_FILES_SIZE

TODAY = date(2026, 11, 21)


def operation(name: str, *, io: float = 1, logs: float = 1, partition: str = "2026/11/21") -> HoodieCompactionOperation:
    return HoodieCompactionOperation(
        base_instant_time="1", file_id=name, partition_path=partition, metrics={TOTAL_IO_MB: io, TOTAL_LOG_FILES_SIZE: logs}
    )


def chosen(strategy: str, candidates: list[HoodieCompactionOperation], **options: int) -> list[str | None]:
    settings = CompactionOptions(strategy=strategy, **options)
    return [found.file_id for found in STRATEGIES[settings.strategy].select(candidates, settings, TODAY)]


MIXED = [operation("small", io=10, logs=5), operation("large", io=30, logs=50), operation("middle", io=20, logs=20)]


def test_unbounded_takes_everything_in_order() -> None:
    assert chosen("UnBoundedCompactionStrategy", MIXED, target_io_mb=1) == ["small", "large", "middle"]


BOUNDS = [(1, ["small"]), (10, ["small"]), (11, ["small", "large"]), (41, ["small", "large", "middle"])]


@pytest.mark.parametrize(("target", "names"), BOUNDS)
def test_bounded_io_stops_once_the_bound_is_used_up(target: int, names: list[str]) -> None:
    assert chosen("BoundedIOCompactionStrategy", MIXED, target_io_mb=target) == names


def test_by_log_size_the_largest_come_first_within_the_bound() -> None:
    assert chosen("LogFileSizeBasedCompactionStrategy", MIXED) == ["large", "middle", "small"]
    assert chosen("LogFileSizeBasedCompactionStrategy", MIXED, target_io_mb=31) == ["large", "middle"]


def test_by_log_size_slices_below_the_threshold_wait() -> None:
    assert chosen("LogFileSizeBasedCompactionStrategy", MIXED, log_size_threshold=20) == ["large", "middle"]
    assert chosen("LogFileSizeBasedCompactionStrategy", MIXED, log_size_threshold=51) == []


FORMS = ["2026/11/{}", "2026-11-{}", "day=2026-11-{}", "202611{}", "year=2026/month=11/day={}"]


@pytest.mark.parametrize("form", FORMS)
def test_by_days_the_newest_partitions_are_taken_newest_first(form: str) -> None:
    candidates = [operation(day, partition=form.format(day)) for day in ("18", "21", "20")]
    assert chosen("DayBasedCompactionStrategy", candidates, day_partitions=2) == ["21", "20"]


def test_days_count_only_where_there_is_something_to_compact() -> None:
    candidates = [operation("old", partition="2020/01/01"), operation("older", partition="2019/01/01")]
    assert chosen("DayBasedCompactionStrategy", candidates, day_partitions=1) == ["old"]
    assert chosen("BoundedPartitionAwareCompactionStrategy", candidates, day_partitions=10) == []


def test_bounded_by_partition_counts_days_from_today() -> None:
    candidates = [operation(day, partition=f"2026/11/{day}") for day in ("10", "11", "12", "21")]
    assert chosen("BoundedPartitionAwareCompactionStrategy", candidates, day_partitions=10) == ["21", "12", "11"]


@pytest.mark.parametrize("partition", ["", "country=fr", "2026/13/01", "2026/11"])
def test_partitions_that_are_no_days_are_refused(partition: str) -> None:
    with pytest.raises(OptionError, match="is no day"):
        chosen("DayBasedCompactionStrategy", [operation("a", partition=partition)])


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_strategy_is_found_by_its_java_class(name: str) -> None:
    package = "org.apache.hudi.table.action.compact.strategy."
    assert CompactionOptions.read({"hoodie.compaction.strategy": package + name}).strategy == name
    assert CompactionOptions.read({"hoodie.compaction.strategy": name}).strategy == name


def test_options_know_each_strategy() -> None:
    assert set(COMPACTION_STRATEGIES) == set(STRATEGIES)


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"hoodie\.compaction\.strategy='com.example.MyStrategy' does not parse: .*UnBounded"):
        CompactionOptions.read({"hoodie.compaction.strategy": "com.example.MyStrategy"})
