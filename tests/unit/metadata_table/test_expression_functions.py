"""Functions of expression indexes: what they give is what Spark gives, or bounds it in each time zone and locale."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.metadata_table.expressions.bounded import Bounded
from lakehouse_engine.metadata_table.expressions.functions import expression_of

TEXT, DAY = pa.string(), pa.date32()
ZONED, PLAIN = pa.timestamp("us", "UTC"), pa.timestamp("us")
ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Sao_Paulo", "Asia/Kolkata", "Europe/Berlin", "Asia/Manila")


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts)  # noqa: DTZ001 (stored without a zone)


MOMENTS = st.datetimes(moment(1800, 1, 1), moment(2300, 1, 1))


def computed(function: str, values: list[Any], kind: pa.DataType, options: Mapping[str, str] | None = None) -> Bounded:
    return expression_of(function, options or {}, kind).compute(pa.chunked_array([pa.array(values, kind)]))


def exact(function: str, values: list[Any], kind: pa.DataType, options: Mapping[str, str] | None = None) -> list[Any]:
    found = computed(function, values, kind, options)
    assert found.is_exact
    assert found.least.type == expression_of(function, options or {}, kind).kind
    return found.least.to_pylist()


@pytest.mark.parametrize(
    ("function", "options", "values", "kind", "expected"),
    [
        ("identity", {}, ["a", None], TEXT, ["a", None]),
        ("lower", {}, ["AbC", None, ""], TEXT, ["abc", None, ""]),
        ("upper", {}, ["AbC1"], TEXT, ["ABC1"]),
        ("trim", {}, ["  a\t ", None], TEXT, ["a\t", None]),
        ("ltrim", {"trimString": "xy"}, ["yxaxy"], TEXT, ["axy"]),
        ("rtrim", {"trimString": "xy"}, ["yxaxy"], TEXT, ["yxa"]),
        ("length", {}, ["aé€", None, "\U0001f600"], TEXT, [3, None, 1]),
        ("length", {}, ["é".encode()], pa.binary(), [2]),
        ("year", {}, [dt.date(2020, 2, 29), None, dt.date(1500, 1, 1)], DAY, [2020, None, 1500]),
        ("month", {}, [dt.date(2020, 2, 29)], DAY, [2]),
        ("day", {}, [dt.date(2020, 2, 29)], DAY, [29]),
        ("hour", {}, [moment(1960, 1, 1, 23, 59, 59, 5), None], PLAIN, [23, None]),
        ("month", {}, [moment(1960, 12, 31, 23, 59)], PLAIN, [12]),
        ("to_date", {}, [moment(1969, 12, 31, 23, 59, 59, 999_999)], PLAIN, [dt.date(1969, 12, 31)]),
        ("to_date", {}, [dt.date(2020, 1, 1)], DAY, [dt.date(2020, 1, 1)]),
        ("date_add", {"days": "3"}, [dt.date(2020, 2, 27), None], DAY, [dt.date(2020, 3, 1), None]),
        ("date_sub", {"days": "-1"}, [dt.date(2020, 2, 29)], DAY, [dt.date(2020, 3, 1)]),
        ("date_format", {"format": "dd/MM yyyy'T'"}, [dt.date(2020, 2, 3)], DAY, ["03/02 2020T"]),
        ("date_format", {"format": "yyyyMM"}, [dt.date(987, 2, 3)], DAY, ["098702"]),
    ],
)
def test_values_are_those_of_spark(
    function: str, options: dict[str, str], values: list[Any], kind: pa.DataType, expected: list[Any]
) -> None:
    assert exact(function, values, kind, options) == expected


def spark_substring(text: str, position: int, count: int) -> str:
    """`UTF8String.substringSQL`."""
    start = position - 1 if position > 0 else (len(text) + position if position < 0 else 0)
    return text[max(start, 0) : max(start + count, 0)] if count > 0 else ""


@given(st.lists(st.text(max_size=6), min_size=1), st.integers(-8, 8), st.integers(-2, 8))
def test_a_substring_is_that_of_spark(texts: list[str], position: int, count: int) -> None:
    found = exact("substring", texts, TEXT, {"pos": str(position), "len": str(count)})
    assert found == [spark_substring(text, position, count) for text in texts]


@given(st.lists(st.text(alphabet="aZıİßſKÉ\U0010ffff", max_size=5), min_size=1))
def test_bounds_hold_what_other_characters_become(texts: list[str]) -> None:
    for function, of in (("lower", str.lower), ("upper", str.upper)):
        found = computed(function, texts, TEXT)
        for text, least, greatest in zip(texts, found.least.to_pylist(), found.greatest.to_pylist(), strict=True):
            assert least.encode() <= of(text).encode() <= greatest.encode()
            assert text.isascii() == (least == greatest == of(text)) or not text.isascii()


def in_zone(at: dt.datetime, zone: str) -> dt.datetime:
    return at.replace(tzinfo=dt.timezone.utc).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


@given(st.lists(MOMENTS, min_size=1, max_size=4), st.sampled_from(ZONES))
def test_moments_are_bounded_in_each_zone(moments: list[dt.datetime], zone: str) -> None:
    local = [in_zone(one, zone) for one in moments]
    seconds = [int((one - moment(1970, 1, 1)).total_seconds() // 1) for one in moments]
    cases: list[tuple[str, dict[str, str], list[Any], pa.DataType, list[Any]]] = [
        ("year", {}, moments, ZONED, [one.year for one in local]),
        ("month", {}, moments, ZONED, [one.month for one in local]),
        ("day", {}, moments, ZONED, [one.day for one in local]),
        ("to_date", {}, moments, ZONED, [one.date() for one in local]),
        ("date_format", {"format": "yyyy-MM-dd HH:mm"}, moments, ZONED, [f"{one:%Y-%m-%d %H:%M}" for one in local]),
        ("from_unixtime", {"format": "yyyy/MM"}, seconds, pa.int64(), [f"{one:%Y/%m}" for one in local]),
        ("from_unixtime", {}, seconds, pa.int64(), [f"{one:%Y-%m-%d %H:%M:%S}" for one in local]),
    ]
    for function, options, values, kind, expected in cases:
        expression = expression_of(function, options, kind)
        assert expression.grows
        assert not expression.is_exact
        found = expression.compute(pa.chunked_array([pa.array([min(values), max(values)], kind)]))
        assert min(found.least.to_pylist()) <= min(expected)
        assert max(found.greatest.to_pylist()) >= max(expected)


def test_bounds_of_moments_are_narrow() -> None:
    found = computed("from_unixtime", [1_700_000_000], pa.int64(), {"format": "yyyy-MM-dd"})
    assert (found.least.to_pylist(), found.greatest.to_pylist()) == (["2023-11-14"], ["2023-11-15"])
    found = computed("month", [moment(2020, 5, 3), moment(2020, 5, 20)], ZONED)
    assert (found.least.to_pylist(), found.greatest.to_pylist()) == ([5, 5], [5, 5])
    found = computed("unix_timestamp", [dt.date(1970, 1, 2)], DAY)
    assert (found.least.to_pylist(), found.greatest.to_pylist()) == ([6 * 3600], [42 * 3600])


@pytest.mark.parametrize(
    ("function", "values", "kind", "ends"),
    [
        ("from_unixtime", [0, None, 10**18], pa.int64(), ["", None, ""]),
        ("year", [dt.date(1, 1, 1)], DAY, [-(2**31)]),
        ("to_date", [moment(9999, 12, 31)], ZONED, [None]),
    ],
)
def test_years_without_four_digits_rule_nothing_out(function: str, values: list[Any], kind: pa.DataType, ends: list[Any]) -> None:
    found = computed(function, values, kind)
    if pa.types.is_date(found.least.type):
        numbers = [one.cast(pa.int32()).to_pylist() for one in (found.least, found.greatest)]
        assert numbers == [[-(2**31)], [2**31 - 1]]
    else:
        assert found.least.to_pylist() == ends
        assert found.greatest.null_count == sum(value is None for value in values)


@pytest.mark.parametrize(
    ("function", "options", "kind", "error", "words"),
    [
        ("abs", {}, pa.int64(), OptionError, "'abs' is no function of an expression index; Hudi has date_add"),
        ("lower", {"days": "1"}, TEXT, OptionError, "lower has no option 'days'; it has none"),
        ("date_add", {}, DAY, OptionError, "date_add needs the option 'days'"),
        ("date_add", {"days": "x"}, DAY, OptionError, "whole number of 32 bits, not 'x'"),
        ("substring", {"pos": "1", "len": str(2**31)}, TEXT, OptionError, "whole number of 32 bits"),
        ("hour", {}, ZONED, UnavailableError, "hour of timestamp"),
        ("split", {"pattern": ","}, TEXT, UnavailableError, "split of string, pattern=','"),
        ("regexp_extract", {"pattern": "a"}, TEXT, UnavailableError, "not computed here exactly as by Spark"),
        ("date_format", {"format": "EEE"}, DAY, UnavailableError, "format='EEE'"),
        ("date_format", {"format": "MM-dd"}, ZONED, UnavailableError, "format='MM-dd'"),
        ("date_format", {"format": "yyyy HH"}, DAY, UnavailableError, "format='yyyy HH'"),
        ("from_unixtime", {"format": "yyyy-dd"}, pa.int64(), UnavailableError, "format='yyyy-dd'"),
        ("from_unixtime", {"format": "yyyy'T"}, pa.int64(), UnavailableError, "from_unixtime of int64"),
        ("year", {}, TEXT, UnavailableError, "year of string"),
        ("to_date", {"format": "yyyy"}, TEXT, UnavailableError, "to_date of string"),
        ("trim", {"trimString": ""}, TEXT, UnavailableError, "trim of string"),
        ("identity", {}, pa.float64(), UnavailableError, "identity of double"),
    ],
)
def test_what_is_not_computed_is_refused(
    function: str, options: dict[str, str], kind: pa.DataType, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words.replace("(", r"\(")):
        expression_of(function, options, kind)
