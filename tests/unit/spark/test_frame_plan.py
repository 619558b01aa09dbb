"""Which read takes a file or a slice, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.model.files import BaseFile, FileSlice, LogFile
from lakehouse_engine.model.instant import InstantRange
from lakehouse_engine.model.keys import FileGroupId
from lakehouse_engine.model.logged import LoggedSlice
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.frames.frame_plan import frame_plan
from lakehouse_engine.storage.memory import MemoryStorage


def logged(name: str, base: int, log: int) -> LoggedSlice:
    files = BaseFile("", name, "0-0-0", "1", size=base) if base else None
    return LoggedSlice(FileSlice(FileGroupId("", name), "1", files, (LogFile("", name, "1", 1, "0-0-0", size=log),)))


LIGHT, HEAVY, LOG_ALONE = logged("light", 60, 30), logged("heavy", 600, 30), logged("alone", 0, 40)
PLAN = ScanPlan(
    MemoryStorage(), (BaseFile("", "whole", "0-0-0", "1", size=10),), pa.schema([("id", pa.int64())]), "1", logged=(LIGHT, HEAVY, LOG_ALONE)
)
SPARK: dict[str, Any] = {"spark_opens": True, "driver_logs": 100, "small_to": 90}


def test_spark_reads_all_and_small_slices_are_merged() -> None:
    found = frame_plan(PLAN, **SPARK)
    assert found.by_spark == PLAN
    assert found.small == (LIGHT, LOG_ALONE)
    assert not found.needs_executors
    assert frame_plan(PLAN, **{**SPARK, "small_to": 0}).small == ()


def test_slices_are_for_executors_where_their_logs_are_too_much_together() -> None:
    found = frame_plan(PLAN, **{**SPARK, "driver_logs": 99})
    assert (found.by_spark.files, found.by_spark.logged, found.small) == (PLAN.files, (), ())
    assert (found.by_executors.files, found.by_executors.logged) == ((), PLAN.logged)
    assert found.needs_executors


def test_all_is_for_executors_where_spark_is_not_to_open_files() -> None:
    found = frame_plan(PLAN, **{**SPARK, "spark_opens": False})
    assert found.by_executors == PLAN
    assert (found.by_spark.files, found.by_spark.logged, found.small) == ((), (), ())


def test_nothing_needs_no_executors() -> None:
    assert not frame_plan(replace(PLAN, files=(), logged=()), **{**SPARK, "spark_opens": False}).needs_executors


@pytest.mark.parametrize(
    "given",
    [
        {"verify": False},
        {"commit_range": InstantRange("0", "1")},
        {"schema": pa.schema([("id", pa.int64()), ("ID", pa.int64())])},
        {"schema": pa.schema([("_HOODIE_record_key", pa.string())])},
    ],
)
def test_slices_are_filtered_where_merged_ones_would_not_be_found_again_or_read(given: dict[str, Any]) -> None:
    assert frame_plan(replace(PLAN, **given), **SPARK).small == ()


def test_a_slice_of_which_no_base_row_is_wanted_is_not_merged() -> None:
    base = LIGHT.slice.base_file
    assert base is not None
    assert frame_plan(replace(PLAN, replaced_only=frozenset([base.path])), **SPARK).small == (LOG_ALONE,)
