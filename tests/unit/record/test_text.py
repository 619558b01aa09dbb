from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.record.text import java_text, timestamp_text

# Right-hand sides printed by Java 17.
DOUBLES = {
    1.0: "1.0",
    100.0: "100.0",
    -12.5: "-12.5",
    123456.789: "123456.789",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    1e10: "1.0E10",
    1.5e-7: "1.5E-7",
    0.001: "0.001",
    0.0009999: "9.999E-4",
    0.1 + 0.2: "0.30000000000000004",
    5e-324: "4.9E-324",
    1.7976931348623157e308: "1.7976931348623157E308",
    float("inf"): "Infinity",
    float("-inf"): "-Infinity",
    0.0: "0.0",
}
FLOATS = {
    1.0: "1.0",
    0.1: "0.1",
    1e10: "1.0E10",
    3.4028235e38: "3.4028235E38",
    1.4e-45: "1.4E-45",
    16777216.0: "1.6777216E7",
    1e-3: "0.001",
}


@pytest.mark.parametrize(("kind", "texts"), [(pa.float64(), DOUBLES), (pa.float32(), FLOATS)], ids=str)
def test_floating_point_reads_as_in_java(kind: pa.DataType, texts: dict[float, str]) -> None:
    assert java_text(pa.array([*texts, None], kind)).to_pylist() == [*texts.values(), None]


def test_zero_and_negative_zero_keep_their_signs() -> None:
    assert java_text(pa.array([0.0, -0.0, 0.0, float("nan")])).to_pylist() == ["0.0", "-0.0", "0.0", "NaN"]


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([-1, 2**31 - 1, None], pa.int32()), ["-1", "2147483647", None]),
        (pa.array([7], pa.int8()), ["7"]),
        (pa.array([-(2**63)], pa.int64()), ["-9223372036854775808"]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1)]), ["2024-02-29", "1969-12-31", "0001-01-01"]),
        (pa.array([1709209815123456, -1], pa.timestamp("us", "UTC")), ["1709209815123456", "-1"]),
        (pa.array([5], pa.timestamp("ms", "Europe/Berlin")), ["5000"]),
        (pa.array([Decimal("1.5"), Decimal("-0.01")], pa.decimal128(10, 2)), ["1.50", "-0.01"]),
        (pa.array([Decimal(0), Decimal("0.000001")], pa.decimal128(10, 6)), ["0.000000", "0.000001"]),
        (pa.array([Decimal(0), Decimal("0.00000012"), Decimal(3)], pa.decimal128(10, 8)), ["0E-8", "1.2E-7", "3.00000000"]),
        (pa.array(["ü é", "", None]).dictionary_encode(), ["ü é", "", None]),
    ],
    ids=str,
)
def test_value_reads_as_in_java(array: pa.Array, texts: list[str | None]) -> None:
    assert java_text(array).to_pylist() == texts
    assert java_text(pa.chunked_array([array, array])).to_pylist() == texts * 2


@pytest.mark.parametrize("array", [pa.array([b"x"]), pa.array([[1]]), pa.array([{"a": 1}])], ids=str)
def test_type_without_identifying_text_is_refused(array: pa.Array) -> None:
    with pytest.raises(UnsupportedTypeError, match="record key or a partition"):
        java_text(array)


def test_timestamps_as_text_are_those_of_java() -> None:
    """What Hudi 0.15.0 and 1.2.0 write into keys (`consistent.logical.timestamp.enabled`, JVM in UTC)."""
    micros = [1777636800000000, 1777636800123000, 1777636800123456, 1777636800120000, -14252277000000, -1, -1001, None]
    seconds = ["2026-05-01 12:00:00.0", "2026-05-01 12:00:00.123", "2026-05-01 12:00:00.123", "2026-05-01 12:00:00.12"]
    assert timestamp_text(pa.array(micros, pa.timestamp("us", "UTC"))).to_pylist() == [
        *seconds,
        "1969-07-20 01:02:03.0",
        "1970-01-01 00:00:00.0",
        "1969-12-31 23:59:59.999",
        None,
    ]
