"""Frames of log rows are sent to a session once, and go on being right for whoever holds them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakehouse_engine import HoodieTable
from lakehouse_engine.spark.frames import composed
from lakehouse_engine.spark.frames.effects import EffectCache
from lakehouse_engine.spark.frames.sent import SentFrames
from tests.spark.test_positions import make, rows
from tests.support.readers import assert_same_rows


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> SentFrames:
    fresh = SentFrames(limit=64 * 1024 * 1024)
    monkeypatch.setattr(composed, "SENT", fresh)
    monkeypatch.setattr(composed, "EFFECTS", EffectCache(limit=64 * 1024 * 1024))
    return fresh


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession) -> HoodieTable:
    made = make(tmp_path / "t")
    made.bulk_insert(rows(list(range(100)), 1))
    made.upsert(rows([3, 4], 2))
    return HoodieTable.open(str(tmp_path / "t"), spark=spark)


def counting(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every table that is sent to the session."""
    counts, create = list[int](), spark.createDataFrame

    def counted(data: pa.Table, *schema: object) -> DataFrame:
        counts.append(len(data))
        return create(data, *schema)

    monkeypatch.setattr(spark, "createDataFrame", counted)
    return counts


def test_what_was_sent_is_not_sent_again_until_a_log_comes(
    table: HoodieTable, spark: SparkSession, sent: SentFrames, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counting(spark, monkeypatch)
    for _ in range(3):
        assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert counts == [1, 2], "one block of bits, two rows"
    table.upsert(rows([5], 3))
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert counts == [1, 2, 1, 3]


def test_a_frame_outlives_what_is_kept_for_it(table: HoodieTable, sent: SentFrames) -> None:
    expected, frame = table.to_arrow(), table.dataframe()
    sent.limit = 0
    table.upsert(rows([3, 9], 3))
    assert_same_rows(table.dataframe().toArrow(), table.to_arrow())
    assert_same_rows(frame.toArrow(), expected)


def test_columns_are_told_apart(table: HoodieTable, sent: SentFrames) -> None:
    for meta_columns in (True, False, True):
        assert_same_rows(table.dataframe(meta_columns=meta_columns).toArrow(), table.to_arrow(meta_columns=meta_columns))


def test_two_frames_of_one_table_can_be_joined(table: HoodieTable, sent: SentFrames) -> None:
    left, right = table.dataframe(), table.dataframe()
    assert left.join(right, left["id"] == right["id"]).count() == 100
    assert left.join(right, left["id"] < right["id"]).where(right["id"] == 4).count() == 4
