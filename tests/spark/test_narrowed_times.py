"""Conditions on days and moments: files that have none such are not given to Spark, and no row is lost, whatever the session's settings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from lakehouse_engine.compat import UTC
from tests.spark.test_partition_discovery import files_opened
from tests.spark.unnarrowed import assert_same_unnarrowed
from tests.support.readers import assert_same_rows

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("wall", pa.timestamp("us")), ("d", pa.date32())])
START = datetime(2026, 3, 27, tzinfo=UTC)
FILES, STEP = 8, timedelta(hours=18)
"""A clock is put forward in Europe in the third file."""
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+05:30", "Pacific/Kiritimati", "Pacific/Niue"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`s.c` and `s.m`, each of files that have 18 hours, one after the other; in `s.m` a row of every other one is in logs."""
    folder = str(tmp_path_factory.mktemp("w"))
    lakehouse = Lakehouse(folder)
    lakehouse.create_schema("s")
    for name, kind in (("s.c", "cow"), ("s.m", "mor")):
        options = {"hoodie.parquet.small.file.limit": "0", "hoodie.index.type": "SIMPLE", "lakehouse.allow.timestamp.ntz": "true"}
        table = lakehouse.create_table(name, schema=SCHEMA, record_key=["id"], table_type=kind, properties=options)
        for number in range(FILES):
            moments = [START + number * STEP + one * timedelta(minutes=90) for one in range(12)]
            rows = {
                "id": [number * 100 + one for one in range(12)],
                "at": moments,
                "wall": [one.replace(tzinfo=None) for one in moments],
                "d": [one.date() for one in moments],
            }
            table.insert(pa.table(rows, schema=SCHEMA))
    last = START + FILES * STEP
    changed = {"id": [0, 200, 400], "at": [last, None, START], "wall": [None] * 3, "d": [last.date(), date(1400, 1, 1), None]}
    lakehouse.table("s.m").upsert(pa.table(changed, schema=SCHEMA))
    return folder


@pytest.fixture
def diary(spark: SparkSession, written: str) -> Lakehouse:
    return Lakehouse(written, spark=spark)


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Any]:
    names = (
        "spark.sql.session.timeZone",
        "spark.sql.timestampType",
        "spark.sql.ansi.enabled",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.parquet.filterPushdown",
    )
    before = {name: spark.conf.get(name) for name in names}
    yield spark.conf
    for name, value in before.items():
        spark.conf.set(name, str(value))


def test_files_of_other_hours_are_not_given_to_spark(diary: Lakehouse, settings: Any) -> None:
    settings.set("spark.sql.session.timeZone", "UTC")
    begin, end = START + 2 * STEP, START + 3 * STEP
    assert files_opened(diary.sql(f"select id from s.c where at >= timestamp '{begin}' and at < timestamp '{end}'")) == 1
    assert files_opened(diary.sql(f"select id from s.c where at between timestamp '{begin:%F %T}' and timestamp '{begin:%FT%T}Z'")) == 1
    assert files_opened(diary.sql("select id from s.c where d = date '2026-03-27'")) == 2
    assert files_opened(diary.sql("select id from s.c where d <> date '2026-03-28' and d < date '2026-03-29'")) == 3
    assert files_opened(diary.sql(f"select id from s.m where at in (timestamp '{begin}', timestamp '{START}')")) == 2


@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_a_moment_is_in_the_sessions_time_zone(kind: str, diary: Lakehouse, settings: Any) -> None:
    settings.set("spark.sql.timestampType", kind)
    settings.set("spark.sql.session.timeZone", "Europe/Paris")
    third = START + 3 * STEP
    # Two hours later there; and half past two is on no clock of that night, when it went on from two to three.
    for text, expected in ((f"{third + timedelta(hours=2):%F %T}", 300), ("2026-03-29 02:30:00", 209)):
        found = diary.sql(f"select id from s.c where at = timestamp '{text}'")
        assert files_opened(found) == 1
        assert [row[0] for row in found.collect()] == [expected]
    settings.set("spark.sql.session.timeZone", "UTC")
    assert files_opened(diary.sql(f"select id from s.c where at = timestamp '{third:%F %T}'")) == 1


@pytest.mark.parametrize(
    "condition", ["at >= '2029-01-01'", "at >= date '2029-01-01'", "d >= '2029-01-01'", "wall >= timestamp '2029-01-01'"]
)
def test_what_spark_would_have_to_coerce_rules_out_no_file(condition: str, diary: Lakehouse) -> None:
    [row] = diary.sql(f"explain select id from s.c where {condition}").collect()
    assert f"base files: {FILES} of {FILES}" in row[0]
    assert "condition: none that is asked before Spark does" in row[0]


def test_a_literal_that_is_no_moment_is_sparks_error(diary: Lakehouse) -> None:
    with pytest.raises(ParseException):
        diary.sql("select id from s.c where at >= timestamp '2026-02-30'")


def test_what_a_write_replaces_is_looked_for_in_files_that_may_have_it(diary: Lakehouse, settings: Any) -> None:
    settings.set("spark.sql.session.timeZone", "UTC")
    begin, end = START + 4 * STEP, START + 5 * STEP
    where = f"`at` >= timestamp '{begin}' and x.at < timestamp '{end}'"
    rows = diary.reading().stored_rows(("s", "c"), where, "x")
    assert files_opened(rows) == 1
    assert_same_rows(rows.select("id").toArrow(), pa.table({"id": [400 + one for one in range(12)]}))
    assert files_opened(diary.reading().stored_rows(("s", "c"))) == FILES


def literal(chance: random.Random) -> str:
    moment = START + chance.choice([0, 1, 2, 3, 5, 8]) * STEP + chance.choice([-60, -1, 0, 0, 0, 1, 90]) * timedelta(minutes=1)
    text = chance.choice(["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S+00:00"])
    found = f"'{moment.strftime(text)}'"
    word = chance.choice(["", "timestamp ", "timestamp ", "date "])
    return found.replace("+00:00", chance.choice(["+00:00", "Z", "-11:00", "+14:00"])) if word != "date " else f"date '{moment:%Y-%m-%d}'"


def condition(chance: random.Random) -> str:
    column = chance.choice(["at", "wall", "d", "x.at"])
    kind = chance.randrange(5)
    if kind == 0:
        return f"{column} between {literal(chance)} and {literal(chance)}"
    if kind == 1:
        return f"{column} in ({literal(chance)}, {literal(chance)})"
    if kind == 2:
        return f"{column} {chance.choice(['is null', 'is not null', '<> ' + literal(chance)])}"
    return f"{column} {chance.choice(['<', '<=', '>', '>=', '=', '=='])} {literal(chance)}"


def statement(chance: random.Random) -> str:
    where = f"{condition(chance)} {chance.choice(['and', 'or'])} {condition(chance)}"
    return f"select id from {chance.choice(['s.c', 's.m'])} as x where {where}"


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("zone", ZONES)
def test_random_conditions_find_the_rows_that_they_find_unnarrowed(
    zone: str, texts: bool, diary: Lakehouse, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.set("spark.sql.session.timeZone", zone)
    settings.set("spark.sql.ansi.enabled", str(not texts))
    settings.set("spark.sql.legacy.typeCoercion.datetimeToString.enabled", str(texts))
    chance = random.Random(f"{zone} {texts}")
    # With some settings Spark refuses texts that are no such values.
    assert_same_unnarrowed(diary, (statement(chance) for _ in range(20 if texts else 10)), PySparkException, monkeypatch)


FAR = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("d", pa.date32())])
NIUE = {"spark.sql.session.timeZone": "Pacific/Niue", "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true"}
OLD = {"spark.sql.legacy.timeParserPolicy": "LEGACY"}


@pytest.mark.parametrize(
    ("given", "condition", "expected"),
    [
        # As texts: "+10000-01-01" comes before "2026", and " 23:30" before "T00:00", which is two days and half an hour earlier.
        (NIUE, "at < '2026-01-01'", [3]),
        (NIUE, "d < '2026-01-01'", [1, 2, 3]),
        (NIUE, "at > '2026-03-26' and at < '2026-03-27T00:00:00+14:00'", [0]),
        # In lists days are texts without ANSI: with old patterns the year -43 is "0044", and the gap in October 1582 has others.
        (OLD, "d in ('0044-08-22', '1500-01-01')", [1]),
        (OLD, "d in ('1582-10-15')", [2]),
        (OLD, "d not in ('1582-10-14')", [0, 1, 2, 3]),
    ],
)
def test_days_and_moments_that_are_compared_as_texts_are_found(
    given: dict[str, str], condition: str, expected: list[int], lakehouse: Lakehouse, settings: Any
) -> None:
    lakehouse.create_schema("s")
    table = lakehouse.create_table("s.t", schema=FAR, record_key=["id"], properties={"hoodie.parquet.small.file.limit": "0"})
    moments, days = [1_774_693_800_000_000, None, None, 253_402_387_200_000_000], [20_540, -735_000, -141_428, 2_932_897]
    for number, (at, day) in enumerate(zip(moments, days, strict=True)):
        columns = [pa.array([number]), pa.array([at], pa.int64()).cast(FAR.field("at").type), pa.array([day], pa.int32()).cast(pa.date32())]
        table.bulk_insert(pa.table(columns, schema=FAR))
    settings.set("spark.sql.ansi.enabled", "false")
    for name, value in given.items():
        settings.set(name, value)
    # Spark's reader of Parquet takes the days that it does not have in October of 1582 for others (docs/sql.md).
    settings.set("spark.sql.parquet.filterPushdown", "false")
    found = lakehouse.sql(f"select id from s.t where {condition}").toArrow()
    assert sorted(found["id"].to_pylist()) == expected
