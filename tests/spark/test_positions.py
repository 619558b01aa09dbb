"""Snapshot reads of slices with logs through Spark: bitmaps over native scans give what `FileSliceReader` gives, from cached positions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, xxhash64

from lakehouse_engine import HoodieTable
from lakehouse_engine.files.slice_reader import SliceReader
from lakehouse_engine.read.query import Query, plan_query
from lakehouse_engine.spark.frames import composed
from lakehouse_engine.spark.frames.logged import effects as frames_effects
from lakehouse_engine.spark.frames.logged.effects import EffectCache, ThinnedFile
from lakehouse_engine.spark.frames.replaced import positions
from lakehouse_engine.spark.frames.replaced.positions import Replaced, replaced_of
from lakehouse_engine.spark.frames.replaced.xxhash import xxhash64 as hash_name
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.write.create import TableSpec, create_table
from tests.support.readers import assert_same_rows

pytestmark = pytest.mark.usefixtures("unmerged")

SCHEMA = pa.schema(
    [("id", pa.int64()), ("region", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))]
)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> EffectCache:
    """An empty cache in the place of the process's."""
    fresh = EffectCache(limit=64 * 1024 * 1024)
    monkeypatch.setattr(composed, "EFFECTS", fresh)
    return fresh


def rows(ids: list[int], seed: int) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "id": ids,
            "region": [f"r{number % 2}" for number in ids],
            "ts": [seed] * len(ids),
            "name": [chance.choice(["Zoë", "", None, f"n{seed}"]) for _ in ids],
            "tags": [chance.choice([[], None, ["a", None]]) for _ in ids],
        },
        schema=SCHEMA,
    )


def make(path: Path, *, ordering: bool = False, partitioned: bool = False, **options: str) -> HoodieTable:
    spec = TableSpec(
        "t",
        SCHEMA,
        record_key=["id"],
        ordering_fields=["ts"] if ordering else [],
        partition_by=["region"] if partitioned else [],
        table_type="mor",
        properties={"hoodie.compact.inline": "false"},
    )
    create_table(LocalStorage(str(path)), spec)
    return HoodieTable.open(str(path), options=options)


def assert_spark_reads_as_arrow(table: HoodieTable, spark: SparkSession) -> None:
    frame = HoodieTable.open(table.path, spark=spark).dataframe(meta_columns=True)
    assert_same_rows(frame.toArrow(), table.to_arrow(meta_columns=True))


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_read_as_arrow_reads_them(seed: int, spark: SparkSession, tmp_path: Path, cache: EffectCache) -> None:
    chance = random.Random(seed)
    table = make(tmp_path / "t", ordering=bool(seed % 2), partitioned=seed >= 3, **{"hoodie.parquet.max.file.size": "4000"})
    known = list(range(300))
    table.bulk_insert(rows(known, 1))
    for step in range(2, 6):
        if chance.random() < 0.3:
            table.delete(rows(chance.sample(known, 20), step).select(["id", "region"]))
        else:
            fresh = list(range(1000 * step, 1000 * step + chance.randint(0, 30)))
            table.upsert(rows([*chance.sample(known, chance.randint(1, 120)), *fresh], chance.randint(1, 9)))
            known += fresh
        assert_spark_reads_as_arrow(table, spark)
    times = [write.requested_time for write in table.timeline.completed().writes()]
    frame = HoodieTable.open(table.path, spark=spark)
    for query in ({"as_of": times[2]}, {"query": "incremental", "begin": times[1]}, {"query": "read_optimized"}):
        assert_same_rows(frame.dataframe(**query).toArrow(), table.to_arrow(**query))  # type: ignore[arg-type]


def test_rows_at_the_borders_of_blocks(spark: SparkSession, tmp_path: Path, cache: EffectCache) -> None:
    table = make(tmp_path / "t", **{"lakehouse.parquet.row.group.rows": "50000"})
    table.bulk_insert(rows(list(range(140_000)), 1))
    borders = [0, 1, 63, 64, 65_534, 65_535, 65_536, 65_537, 131_071, 131_072, 139_999]
    table.upsert(rows(borders, 2))
    frame = HoodieTable.open(table.path, spark=spark).dataframe().select("id", "ts").toArrow().sort_by("id")
    ids = np.asarray(frame.column("id"))
    assert (ids == np.arange(140_000)).all()
    assert np.flatnonzero(np.asarray(frame.column("ts")) == 2).tolist() == borders


def test_a_second_read_of_the_same_slices_reads_no_logs(
    spark: SparkSession, tmp_path: Path, cache: EffectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = SliceReader.changes

    def counted(self: SliceReader, piece: object, columns: object, **given: Any) -> object:
        read.append(piece.slice.file_id)  # type: ignore[attr-defined]
        return original(self, piece, columns, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(SliceReader, "changes", counted)
    table = make(tmp_path / "t", partitioned=True)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    assert_spark_reads_as_arrow(table, spark)
    assert len(read) == 2
    assert_spark_reads_as_arrow(table, spark)
    assert len(read) == 2
    table.upsert(rows([0, 2], 3))  # the other partition's slice stays as it is
    assert_spark_reads_as_arrow(table, spark)
    assert len(read) == 3


def test_a_commit_that_completes_later_is_seen_although_its_files_were_there(tmp_path: Path, cache: EffectCache) -> None:
    table = make(tmp_path / "t")
    table.bulk_insert(rows(list(range(50)), 1))
    result = table.upsert(rows([1, 2], 2))
    completed = tmp_path / "t" / ".hoodie" / f"{result.instant}.deltacommit"
    content = completed.read_bytes()
    completed.unlink()

    def names() -> list[int]:
        plan = plan_query(HoodieTable.open(table.path).state, Query())
        effects = cache.effects(plan.reader, plan.logged, plan.schema.names) if plan.reader else []
        return [number for effect in effects for number in effect.removed.tolist()]

    assert names() == []
    completed.write_bytes(content)
    assert len(names()) == 2


def test_the_cache_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    table = make(tmp_path / "t", partitioned=True)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    plan = plan_query(table.state, Query())
    assert plan.reader is not None
    one = EffectCache(limit=10**9).effects(plan.reader, plan.logged[:1], plan.schema.names)[0]
    small = EffectCache(limit=one.nbytes + one.nbytes // 2)
    for _ in range(2):
        found = small.effects(plan.reader, plan.logged, plan.schema.names)
        assert sorted(effect.added.num_rows for effect in found) == [2, 2]
        assert 0 < small.size <= small.limit
    assert EffectCache(limit=1).effects(plan.reader, plan.logged, plan.schema.names)[0].added.equals(one.added)


def test_hashes_of_names_are_those_that_spark_computes(spark: SparkSession) -> None:
    chance = random.Random(7)
    names = ["", "a", "abcd", "é" * 5, "x" * 31, "x" * 32, "y" * 71, *(f"{chance.random()}_{chance.random()}" for _ in range(20))]
    numbers = [0, 1, -1, 2**40 + 3, chance.getrandbits(62)]
    frame = spark.createDataFrame([(name, number) for name in names for number in numbers], "name string, number bigint")
    for row in frame.select("name", "number", xxhash64(col("name"), col("number")).alias("hash")).collect():
        assert hash_name(row["name"], np.array([row["number"]]))[0] == row["hash"]


def thinned(sizes: Sequence[int]) -> list[ThinnedFile]:
    """Of 140,000 rows, one of which is gone: of each file another one, of the second of its three blocks."""
    return [ThinnedFile(f"p/f{number}", size, 140_000, np.array([70_000 + number])) for number, size in enumerate(sizes)]


def colliding(name: str, salts: np.ndarray) -> np.ndarray:
    """A hash that tells names apart with the second salt only."""
    return hash_name(name, salts) if salts[0] else np.zeros(len(salts), np.int64)


def is_gone(replaced: Replaced, number: int, row: int) -> bool:
    """As the filter looks it up."""
    mask, blocks = (1 << replaced.bits) - 1, 1 << replaced.bits + replaced.step
    place = ((number >> replaced.bits) ^ int(replaced.longs[blocks | (number & mask)])) & mask
    at = int(replaced.longs[place << replaced.step | row >> 16]) ^ (number & 0x3FFFFFFF)
    assert 1024 <= at < len(replaced.longs)
    return bool(int(replaced.longs[at | (row & 0xFFFF) >> 6]) >> (row & 63) & 1)


def test_files_whose_names_have_one_hash_get_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "hash_name", colliding)
    replaced = replaced_of(thinned([1000, 1000]))
    assert replaced.salt == 1
    assert len(replaced.longs) == 1024 + 3 * 1024, "a directory, a block of none, one of each file"


@pytest.mark.parametrize(("sizes", "told"), [((5, 6, 7), True), ((5, 6, 5), False), ((5, 6, -1), False), (range(7, 4200, 5), True)])
def test_files_are_told_by_their_sizes_where_no_two_have_one(sizes: Sequence[int], told: bool) -> None:
    found = thinned(sizes)
    replaced = replaced_of(found)
    assert (replaced.salt is None) is told
    for number, file in enumerate(found):
        key = file.size if told else int(hash_name(f"f{number}", np.array([replaced.salt], np.int64))[0])
        gone = {row for row in (0, 69_999 + number, 70_000 + number, 70_001 + number, 139_999) if is_gone(replaced, key, row)}
        assert gone == {70_000 + number}


def test_of_very_many_files_the_names_tell_them_apart() -> None:
    assert replaced_of(thinned(range(positions._MOST_SIZES))).salt is None
    assert replaced_of(thinned(range(positions._MOST_SIZES + 1))).salt == 0


@pytest.mark.parametrize("sizes", ["known", "unknown"])
def test_both_kinds_of_keys_find_their_rows(
    sizes: str, spark: SparkSession, tmp_path: Path, cache: EffectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sizes == "unknown":
        monkeypatch.setattr(positions, "_sizes_are_known", lambda files: False)
    table = make(tmp_path / "t", partitioned=True, **{"lakehouse.parquet.row.group.rows": "50000"})
    table.bulk_insert(rows(list(range(140_001)), 1))
    table.upsert(rows([3, 4, 139_999], 2))
    assert_spark_reads_as_arrow(table, spark)


@pytest.mark.parametrize(
    ("listed", "count", "told"), [({"base_bytes": 7}, 100, "another size"), ({"base_rows": 65_536}, 70_000, "more rows")]
)
def test_a_file_that_is_another_one_than_was_listed_is_an_error(
    listed: dict[str, int], count: int, told: str, spark: SparkSession, tmp_path: Path, cache: EffectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are not taken for rows that no log replaces."""
    of_a_slice = frames_effects._effect
    monkeypatch.setattr(frames_effects, "_effect", lambda *given: replace(of_a_slice(*given), **listed))
    table = make(tmp_path / "t")
    table.bulk_insert(rows(list(range(count)), 1))
    table.upsert(rows([0, 1], 2))
    with pytest.raises(PySparkException, match=told):
        HoodieTable.open(table.path, spark=spark).dataframe().toArrow()


def test_a_salted_name_finds_its_rows(spark: SparkSession, tmp_path: Path, cache: EffectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "hash_name", colliding)
    monkeypatch.setattr(positions, "_sizes_are_known", lambda files: False)
    table = make(tmp_path / "t", partitioned=True)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    assert_spark_reads_as_arrow(table, spark)


def test_one_condition_serves_all_frames_over_the_same_logs(spark: SparkSession, tmp_path: Path, cache: EffectCache) -> None:
    """Of other files, twice in one query, and in a query in a query."""
    table = make(tmp_path / "t", partitioned=True)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2, 3], 2))
    opened = HoodieTable.open(table.path, spark=spark)
    expected = opened.to_arrow(columns=["id", "region", "ts"]).sort_by("id")
    frames = [opened.dataframe().alias(name) for name in ("a", "b")]
    joined = frames[0].join(frames[1], "id").select("id", "b.region", "a.ts")
    assert joined.toArrow().sort_by("id").equals(expected.cast(joined.toArrow().schema))
    frames[0].createOrReplaceTempView("of_all")
    (most,) = spark.sql("select count(*) c from of_all where ts = (select max(ts) from of_all)").collect()
    assert most.c == 4
    for region in pc.unique(expected["region"]).to_pylist():
        narrowed = opened.dataframe(filters=pc.field("region") == region).select("id").toArrow()
        alone = opened.dataframe().where(col("region") == region).select("id").toArrow()
        wanted = expected.filter(pc.equal(expected["region"], region))["id"].to_pylist()
        assert sorted(narrowed["id"].to_pylist()) == sorted(alone["id"].to_pylist()) == wanted


def test_columns_that_are_not_asked_for_are_not_read(spark: SparkSession, tmp_path: Path, cache: EffectCache) -> None:
    table = make(tmp_path / "t")
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1], 2))
    frame = HoodieTable.open(table.path, spark=spark).dataframe().select("ts")
    frame.createOrReplaceTempView("narrow")
    plan = "\n".join(row[0] for row in spark.sql("explain select ts from narrow").collect())
    assert "FileScan parquet" in plan
    assert "ReadSchema: struct<ts:bigint,_tmp_metadata_row_index:bigint>" in plan
    assert "Python" not in plan


@pytest.mark.parametrize("folder", ["a[1]{b,c}", "what?*", "100%41 ü#"])
def test_directories_that_look_like_patterns_are_read_as_they_are_called(
    folder: str, spark: SparkSession, tmp_path: Path, cache: EffectCache
) -> None:
    (tmp_path / folder).mkdir()
    table = make(tmp_path / folder / "t", partitioned=True)
    table.bulk_insert(rows([1, 2, 3], 1).set_column(1, "region", [["r{0}", "r[0]*", "r?"]]))
    table.upsert(rows([2], 2).set_column(1, "region", [["r[0]*"]]))
    assert_spark_reads_as_arrow(table, spark)


_THEIR_NAMES = [
    ("_metadata", "_METADATA_"),
    ("__block", "__bits"),
    ("row_index", "file_name"),
    ("__Lakehouse_Replaced", "__lakehouse_replaced_"),
    ("__lakehouse_replaced", "_Metadata"),
    ("_tmp_metadata_row_index", "_metadata"),
    ("_TMP_metadata_row_index", "note"),
]


@pytest.mark.parametrize("names", _THEIR_NAMES)
def test_columns_may_be_called_as_spark_and_the_scan_call_theirs(
    names: tuple[str, str], spark: SparkSession, tmp_path: Path, cache: EffectCache
) -> None:
    schema = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in names)])
    create_table(LocalStorage(str(tmp_path / "t")), TableSpec("t", schema, ["id"], table_type="mor"))
    table = HoodieTable.open(str(tmp_path / "t"))
    table.insert(pa.table([[1, 2, 3], ["a", "b", "c"], ["d", "e", "f"]], schema=schema))
    table.upsert(pa.table([[2], ["x"], ["y"]], schema=schema))
    assert_spark_reads_as_arrow(table, spark)


@pytest.mark.parametrize("partitioned", [True, False])
def test_a_session_whose_parquet_is_of_another_interface_reads_the_same(
    partitioned: bool, spark: SparkSession, tmp_path: Path, cache: EffectCache
) -> None:
    """Spark's second interface of sources has no columns of what a file is, and no numbers of rows."""
    table = make(tmp_path / "t", partitioned=partitioned)
    table.bulk_insert(rows(list(range(100)), 1))
    table.upsert(rows([0, 1, 2], 2))
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    assert_spark_reads_as_arrow(table, spark)
