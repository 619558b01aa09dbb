"""Which footers are read to know whether Spark reads base files in a table's types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.files.footers import FooterCache
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.read.scan import ScanPlan
from lakehouse_engine.spark.frames.widened import spark_widens
from lakehouse_engine.storage.base import Storage
from lakehouse_engine.storage.local import LocalStorage

OLD, MIDDLE, NEW = "20240101000000000", "20240102000000000", "20240103000000000"


def plan_of(folder: Path, wanted: pa.Schema, stored: dict[str, pa.Table]) -> ScanPlan:
    """Of files of another program, by their instants."""
    files = []
    for instant, table in stored.items():
        file = BaseFile("", "f0000000-0000-0000-0000-000000000000-0", "0-0-0", instant)
        pq.write_table(table, folder / file.name)
        files.append(replace(file, size=(folder / file.name).stat().st_size))
    return ScanPlan(LocalStorage(str(folder)), tuple(files), wanted, None)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose footers are read."""
    found: list[str] = []
    read = FooterCache.read

    def noted(cache: FooterCache, storage: Storage, file: BaseFile, *, verify: bool = True) -> pq.FileMetaData:
        found.append(file.instant_time)
        return read(cache, storage, file, verify=verify)

    monkeypatch.setattr(FooterCache, "read", noted)
    return found


TEXTS = pa.schema([("v", pa.string()), ("s", pa.struct([("t", pa.string())]))])
AS_TEXT = pa.table({"v": ["a"], "s": [{"t": "b"}]}, schema=TEXTS)


def test_of_texts_the_oldest_file_tells(tmp_path: Path, opened: list[str]) -> None:
    plan = plan_of(tmp_path, TEXTS, {NEW: AS_TEXT, OLD: AS_TEXT, MIDDLE: AS_TEXT})
    assert spark_widens(plan)
    assert opened == [OLD]
    assert spark_widens(plan)
    assert opened == [OLD]


@pytest.mark.parametrize("before", [pa.table({"v": [1], "s": [{"t": "b"}]}), pa.table({"v": ["a"], "s": [{"t": 1.5}]})])
def test_numbers_that_became_text(tmp_path: Path, before: pa.Table) -> None:
    assert not spark_widens(plan_of(tmp_path, TEXTS, {OLD: before, NEW: AS_TEXT}))


@pytest.mark.parametrize("before", [pa.table({"s": [{"t": "b"}]}), pa.table({"v": ["a"], "s": [{"u": 1}]}), pa.table({"x": [1]})])
def test_where_the_oldest_file_has_not_the_column_all_are_asked(tmp_path: Path, opened: list[str], before: pa.Table) -> None:
    between = pa.table({"v": [1], "s": [{"t": 2}]})
    assert not spark_widens(plan_of(tmp_path, TEXTS, {OLD: before, MIDDLE: between, NEW: AS_TEXT}))
    assert set(opened) >= {OLD, MIDDLE}


def test_of_floats_all_are_asked(tmp_path: Path, opened: list[str]) -> None:
    wanted = pa.schema([("f", pa.float64()), ("v", pa.string())])
    double, single = pa.table({"f": [0.5], "v": ["a"]}), pa.table({"f": pa.array([0.5], pa.float32()), "v": ["a"]})
    assert spark_widens(plan_of(tmp_path, wanted, {OLD: double, NEW: double}))
    assert set(opened) == {OLD, NEW}
    assert not spark_widens(plan_of(tmp_path, wanted, {OLD: double, MIDDLE: single}))


def test_no_footer_is_read_of_texts_that_this_engine_wrote(tmp_path: Path, opened: list[str]) -> None:
    assert spark_widens(replace(plan_of(tmp_path, TEXTS, {OLD: AS_TEXT}), foreign=False))
    assert opened == []
