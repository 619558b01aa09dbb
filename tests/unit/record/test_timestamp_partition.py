from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import OptionError, PartitionValueError
from lakehouse_engine.record.keys.date_pattern import DatePattern, java_zone
from lakehouse_engine.record.keys.timestamp_partition import TimestampFormat


def paths(values: pa.Array, **properties: str) -> list[str]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return TimestampFormat.read(named).texts(values, "at").to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("UNIX_TIMESTAMP", pa.array([0, 1_700_000_000, -1, None]), ["1970/01/01/00", "2023/11/14/22", "1969/12/31/23", "1970/01/01/00"]),
        ("EPOCHMILLISECONDS", pa.array([1_700_000_000_123, None]), ["2023/11/14/22", "1970/01/01/00"]),
        ("EPOCHMICROSECONDS", pa.array([1_700_000_000_123_456, -1]), ["2023/11/14/22", "1970/01/01/00"]),
        ("EPOCHMICROSECONDS", pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")), ["2023/11/14/22"]),
        ("UNIX_TIMESTAMP", pa.array([1_700_000_000.9]), ["2023/11/14/22"]),
        ("UNIX_TIMESTAMP", pa.array([Decimal("1700000000.5")], pa.decimal128(12, 1)), ["2023/11/14/22"]),
        ("UNIX_TIMESTAMP", pa.array([1_700_000_000], pa.int32()), ["2023/11/14/22"]),
    ],
)
def test_number_is_formatted_in_gmt(kind: str, values: pa.Array, expected: list[str]) -> None:
    assert paths(values, timestamp_type=kind, output_dateformat="yyyy/MM/dd/HH") == expected


@pytest.mark.parametrize(("unit", "value"), [("days", 20000), ("HOURS", 20000 * 24), ("MINUTES", 20000 * 1440), ("seconds", 20000 * 86400)])
def test_scalar_counts_its_unit(unit: str, value: int) -> None:
    made = paths(pa.array([value]), timestamp_type="SCALAR", timestamp_scalar_time_unit=unit, output_dateformat="yyyy-MM-dd")
    assert made == ["2024-10-04"]


def test_null_scalar_is_one_unit_after_the_epoch() -> None:
    assert paths(pa.array([None], pa.int64()), timestamp_scalar_time_unit="DAYS", output_dateformat="yyyy-MM-dd") == ["1970-01-02"]


def test_output_zone_moves_the_date() -> None:
    values = pa.array([1_700_000_000_123])
    for zone in ("GMT+8:00", "GMT+08:00", "GMT+8", "GMT+0800", "Asia/Shanghai"):
        assert paths(values, timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy-MM-dd HH", timezone=zone) == ["2023-11-15 06"]
    made = paths(values, timestamp_type="EPOCHMILLISECONDS", output_dateformat="HH", output_timezone="America/New_York")
    assert made == ["17"]


def test_zone_offset_of_seconds_counts_in_early_years() -> None:
    # Amsterdam was 19 min 32 s ahead of UTC.
    seconds = int(dt.datetime(1920, 1, 1, tzinfo=UTC).timestamp())
    values = pa.array([seconds - 1172, seconds - 1173])
    made = paths(values, timestamp_type="UNIX_TIMESTAMP", output_dateformat="yyyy", output_timezone="Europe/Amsterdam")
    assert made in (["1920", "1919"], ["1919", "1919"])  # the zone database was changed to follow Brussels


DATE = {"timestamp_type": "DATE_STRING", "output_dateformat": "yyyyMMdd HH"}


def test_text_is_read_by_the_first_pattern_that_fits() -> None:
    values = pa.array(["2024-02-29T23:59:59Z", "2024-03-01", "20240302", None])
    made = paths(values, **DATE, input_dateformat="yyyy-MM-dd'T'HH:mm:ssZ, yyyy-MM-dd,yyyyMMdd")
    assert made == ["20240229 23", "20240301 00", "20240302 00", "19700101 00"]


def test_offset_in_the_text_decides_where_no_zone_is_configured() -> None:
    values = pa.array(["2024-01-01T01:00:00+05:30", "2024-01-01T01:00:00-0500"])
    pattern = {"input_dateformat": "yyyy-MM-dd'T'HH:mm:ssZ"}
    assert paths(values, **DATE, **pattern) == ["20240101 01", "20240101 01"]
    assert paths(values, **DATE, **pattern, output_timezone="UTC") == ["20231231 19", "20240101 06"]
    assert paths(values, **DATE, **pattern, input_timezone="UTC") == ["20231231 19", "20240101 06"]


def test_input_zone_is_that_of_text_without_offset() -> None:
    made = paths(pa.array(["2024-01-01 01"]), **DATE, input_dateformat="yyyy-MM-dd HH", input_timezone="Asia/Tokyo", output_timezone="UTC")
    assert made == ["20231231 16"]


def test_text_of_another_form_is_refused() -> None:
    with pytest.raises(PartitionValueError, match=r"'01/02/2024'.*'at'.*yyyy-MM-dd"):
        paths(pa.array(["01/02/2024"]), **DATE, input_dateformat="yyyy-MM-dd")


@pytest.mark.parametrize(
    ("values", "properties"),
    [
        (pa.array([1]), {**DATE, "input_dateformat": "yyyy"}),
        (pa.array(["2024"]), {"timestamp_type": "UNIX_TIMESTAMP", "output_dateformat": "yyyy"}),
        (pa.array([1], pa.timestamp("us", "UTC")), {"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": "yyyy"}),
        (pa.array([2**62]), {"timestamp_type": "UNIX_TIMESTAMP", "output_dateformat": "yyyy"}),
        (pa.array([float("nan")]), {"timestamp_type": "UNIX_TIMESTAMP", "output_dateformat": "yyyy"}),
    ],
)
def test_column_or_value_that_does_not_fit_the_type_is_refused(values: pa.Array, properties: dict[str, str]) -> None:
    with pytest.raises(PartitionValueError, match="'at'"):
        paths(values, **properties)


@pytest.mark.parametrize(
    ("properties", "word"),
    [
        ({"timestamp_type": "UNIX_TIMESTAMP"}, "output.dateformat"),
        ({"output_dateformat": "yyyy"}, "timestamp.type"),
        ({"output_dateformat": "yyyy", "timestamp_type": "NONSENSE"}, "NONSENSE"),
        ({"output_dateformat": "yyyy", "timestamp_type": "DATE_STRING"}, "input.dateformat"),
        ({"output_dateformat": "yyyy", "timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "weeks"}, "WEEKS"),
        ({"output_dateformat": "yyyy", "timestamp_type": "UNIX_TIMESTAMP", "timezone": "Mars/Base"}, "Mars/Base"),
        ({"output_dateformat": "EEE", "timestamp_type": "UNIX_TIMESTAMP"}, "EEE"),
        ({"output_dateformat": "'open", "timestamp_type": "UNIX_TIMESTAMP"}, "quote"),
    ],
)
def test_property_that_does_not_say_enough_is_refused(properties: dict[str, str], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        paths(pa.array([1]), **properties)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # Printed by Joda-Time 2.12.
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2023-11-14T17:13:20.123-0500"),
        ("yyyy-MM-dd'T'HH:mm:ssZZ", "2023-11-14T17:13:20-05:00"),
        ("yy-M-d H:m:s", "23-11-14 17:13:20"),
        ("xxxx-'W'ww-e", "2023-W46-2"),
        ("DDD K h k", "318 5 5 17"),
        ("''yyyy'x''y'", "'2023x'y"),
    ],
)
def test_pattern_prints_as_joda(pattern: str, expected: str) -> None:
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC).astimezone(java_zone("America/New_York"))
    assert DatePattern.of(pattern).format(moment) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "milliseconds"),
    [
        # Read by Joda-Time 2.12; None where it refuses.
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.428Z", 1585746093428),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.42+05:30", 1585726293420),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2020-04-01T13:01:33.428+05", 1585728093428),
        ("yyyy-MM-dd'T'HH:mm:ssZ", "2020-04-01T13:01:33", None),
        ("yyyy-MM-dd'T'HH:mm:ssZ", "2020-04-01T13:01:33z", 1585746093000),
        ("yyyyMMdd", "20200401", 1585699200000),
        ("yyyyMMdd", "2020041", 1585699200000),
        ("yyyy-MM-dd", "2020-4-1", 1585699200000),
        ("yyyy-MM-dd", "2020-13-01", None),
        ("yyyy-MM-dd", " 2020-01-01", None),
        ("yyyy-MM-dd HH:mm", "2020-01-01 24:00", None),
        ("yyyyMMddHHmmssSSS", "20200401130133123", 1585746093123),
        ("HH yyyy", "5 2020", 1577854800000),
    ],
)
def test_pattern_reads_as_joda(pattern: str, text: str, milliseconds: int | None) -> None:
    moment = DatePattern.of(pattern).parse(text, UTC)
    assert (None if moment is None else round(moment.timestamp() * 1000)) == milliseconds


@pytest.mark.parametrize("pattern", ["yy-MM-dd", "MM-dd", "yyyy yyyy", "yyyy DDD"])
def test_pattern_that_does_not_tell_a_date_is_refused_for_reading(pattern: str) -> None:
    with pytest.raises(OptionError):
        DatePattern.of(pattern).parse("1", UTC)
