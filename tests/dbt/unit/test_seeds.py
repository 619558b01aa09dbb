"""Seeds as typed Arrow tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import agate
import pyarrow as pa
import pytest
from dbt_common.clients.agate_helper import build_type_tester
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse.writing.seed_columns import seed_table
from dbt.adapters.lakehouse.writing.seeds import text_lengths
from dbt.adapters.lakehouse.writing.types import arrow_type
from lakehouse_engine.api.types import spark_name


def one(values: list[object], kind: agate.data_types.DataType, inferred: str, override: str | None = None) -> pa.Array:
    table = agate.Table([[value] for value in values], ["c"], [kind])
    return seed_table(table, {"c": inferred}, {"c": override} if override else {})["c"].combine_chunks()


def test_numbers_keep_their_type_and_nulls_stay_null() -> None:
    found = one([Decimal(9007199254740993), None], agate.Number(), "bigint")
    assert found.type == pa.int64()
    assert found.to_pylist() == [9007199254740993, None]


def test_text_is_kept_as_it_is() -> None:
    assert one(["O'Brien", "", None], agate.Text(null_values=()), "string").to_pylist() == ["O'Brien", "", None]


def test_times_are_utc() -> None:
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - a CSV file's times have no zone
    assert one([moment], agate.DateTime(), "timestamp").to_pylist() == [moment.replace(tzinfo=dt.timezone.utc)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", "string", "007"),
        ("7", "smallint", 7),
        ("1.50", "decimal(10, 2)", Decimal("1.50")),
        ("yes", "boolean", True),
        ("2020-01-02", "date", dt.date(2020, 1, 2)),
        ("2020-01-02 03:04:05", "timestamp", dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)),
        ("1.5", "double", 1.5),
        ("x", "varchar(10)", "x"),
    ],
)
def test_column_types_are_parsed_from_text(text: str, kind: str, value: object) -> None:
    assert one([text, None], agate.Text(null_values=()), "string", kind).to_pylist() == [value, None]


def test_text_that_does_not_parse_is_refused_with_the_column() -> None:
    with pytest.raises(DbtRuntimeError, match="seed column 'c' does not hold values of type int"):
        one(["abc"], agate.Text(), "string", "int")


def spelled_otherwise(text: str, kind: str) -> pa.Array:
    """A column `zip` whose type is given for `ZIP`, as dbt reads it."""
    table = agate.Table([[text], [None]], ["zip"], build_type_tester({"ZIP": kind}))
    return seed_table(table, {"zip": "bigint"}, {"ZIP": kind})["zip"].combine_chunks()


@pytest.mark.filterwarnings("ignore:.*does not match the name of any column:RuntimeWarning")
def test_text_of_a_column_that_column_types_spells_otherwise_is_kept_or_refused() -> None:
    assert spelled_otherwise("a7", "string").to_pylist() == ["a7", None]
    assert spelled_otherwise("7", "int").to_pylist() == [7, None]
    for text in ("007", "2024-01-01", "TRUE"):
        with pytest.raises(DbtRuntimeError, match="column_types names 'ZIP', but the seed's file calls the column 'zip'"):
            spelled_otherwise(text, "string")
    with pytest.raises(DbtRuntimeError, match=r"seed column 'zip' does not hold values of type int: 1.5 is no whole number"):
        spelled_otherwise("1.5", "int")


def test_a_number_that_is_too_large_is_refused_with_the_column() -> None:
    told = "does not hold values of type bigint: 100000000000000000000 has too many digits; name the column's type in column_types"
    with pytest.raises(DbtRuntimeError, match=f"seed column 'c' {told}"):
        one([Decimal(10) ** 20], agate.Number(), "bigint")
    limits = [2**63 - 1, -(2**63)]
    assert one([Decimal(limit) for limit in limits], agate.Number(), "bigint").to_pylist() == limits


def test_whole_numbers_that_dbt_rounds_are_refused_and_others_are_not() -> None:
    """They come as agate reads them of a file: 30 digits are rounded to 28, and are a column of double, as 1e30 is."""
    long, longer = "1234567890123456789012345678", "123456789012345678901234567890"
    assert one(["1e30", "-2.5", long], agate.Number(), "double").to_pylist() == [1e30, -2.5, float(long)]
    with pytest.raises(DbtRuntimeError, match=r"of type double: of a number as long as 12345\d* dbt keeps the first 28 digits"):
        one([longer], agate.Number(), "double")
    assert one([longer], agate.Text(), "string", "decimal(38, 0)").to_pylist() == [Decimal(longer)]


def test_text_that_is_longer_than_its_column_is_refused_and_blanks_at_its_end_are_cut() -> None:
    assert one(["abc  ", "ab", None], agate.Text(null_values=()), "string", "varchar(3)").to_pylist() == ["abc", "ab", None]
    with pytest.raises(DbtRuntimeError, match=r"'c' has 1 value\(s\) that are longer than varchar\(3\), for example 'abcd'"):
        one(["abc", "abcd"], agate.Text(null_values=()), "string", "varchar(3)")
    with pytest.raises(DbtConfigError, match="use varchar"):
        one(["abc"], agate.Text(null_values=()), "string", "char(3)")


def test_lengths_are_those_of_the_columns_that_the_config_makes_text() -> None:
    types = {"CODE": "varchar(3)", "name": "string", "n": "int", "other": "varchar(5)"}
    assert text_lengths(["code", "name", "n", "free"], types) == {"code": 3, "name": None}


def test_unknown_column_type_is_refused_with_the_nearest() -> None:
    with pytest.raises(DbtConfigError, match="did you mean 'bigint'"):
        arrow_type("bigit")


@pytest.mark.parametrize("name", ["int", "bigint", "decimal(10,2)", "timestamp", "date", "string", "double", "boolean", "binary"])
def test_type_names_round_trip(name: str) -> None:
    assert spark_name(arrow_type(name)) == name


def test_nested_type_names() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.map_(pa.string(), pa.int64())))])
    assert spark_name(kind) == "struct<a:int,b:array<map<string,bigint>>>"


def test_times_with_and_without_offsets_in_one_column_are_the_moments_that_they_say() -> None:
    texts = ["2024-01-01T00:00:00+02:00", "2024-01-01 00:00:00", None, "2024-01-01T00:00:00.5Z", "2024-01-01 00:00:00-0530"]
    table = seed_table(agate.Table([[text] for text in texts], ["at"], [agate.Text()]), {"at": "string"}, {"at": "timestamp"})
    moments = ["2023-12-31T22:00:00", "2024-01-01T00:00:00", None, "2024-01-01T00:00:00.500000", "2024-01-01T05:30:00"]
    assert [at and at.replace(tzinfo=None).isoformat() for at in table["at"].to_pylist()] == moments


@pytest.mark.parametrize("kind", ["timestamp_ntz", "date"])
def test_offsets_in_columns_that_keep_no_moments_are_refused_by_name(kind: str) -> None:
    rows = agate.Table([["2024-01-01T00:00:00"], ["2024-01-01T00:00:00+02:00"]], ["at"], [agate.Text()])
    with pytest.raises(DbtRuntimeError, match=r"seed column 'at' .*'2024-01-01T00:00:00\+02:00' has an offset from UTC"):
        seed_table(rows, {"at": "string"}, {"at": kind})
