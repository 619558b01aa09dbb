"""What a filter may say, and that statistics and paths never rule out a row that it is true of."""

from __future__ import annotations

import datetime as dt
import functools
import io
from collections.abc import Iterable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import OptionError, PartitionValueError
from lakehouse_engine.files.column_bounds import misleads
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.read import pruning
from lakehouse_engine.read.pruning import Scope
from lakehouse_engine.read.row_filter import RowFilter
from lakehouse_engine.read.statistics import matching_row_groups
from lakehouse_engine.record.keys.keygen import key_generator_of
from lakehouse_engine.record.keys.partition_values import PathRules

F = pc.field
UTC = dt.timezone.utc
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("e", pa.decimal128(10, 2)),
        ("r", pa.struct([("a", pa.int64())])),
    ]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3),
    "n": st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "x": st.sampled_from([float("nan"), -0.0, 0.0, -1.5, 2.5, float("inf"), float("-inf")]),
    "y": st.sampled_from([float("nan"), -0.0, 0.0, -1.5, 2.5]),
    "s": st.sampled_from(["", "a", "b", "ba", "\u00e4", "%41", "z" * 300]),
    "b": st.booleans(),
    "d": st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 5)),
    "t": st.integers(1, 5).map(lambda day: dt.datetime(2026, 1, day, tzinfo=UTC)),
    "e": st.integers(-3, 3).map(lambda cents: Decimal(cents) / 100),
    "r": st.fixed_dictionaries({"a": st.integers(0, 2) | st.none()}),
}
FLAT = [name for name in SCHEMA.names if name != "r"]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 6))
    nullable = {name: draw(st.sampled_from([values, values | st.none(), st.none()])) for name, values in VALUES.items()}
    rows = {name: draw(st.lists(values, min_size=count, max_size=count)) for name, values in nullable.items()}
    return pa.table(rows, schema=SCHEMA)


@st.composite
def comparisons(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(FLAT))
    field, kind = F(name), SCHEMA.field(name).type
    value = pa.scalar(draw(VALUES[name]), kind)
    made = [
        field == value,
        field != value,
        field < value,
        field >= value,
        pc.scalar(value) > field,
        field.is_null(),
        field.is_null(nan_is_null=True),
        field.is_valid(),
        field.isin(pa.array([draw(VALUES[name]), draw(VALUES[name]), None], kind)),
        pc.field("r", "a") > 1,
        F("i") > F("n"),
        F("n") > 1.5,
        pc.is_nan(F("x")),
        pc.match_like(F("s"), "b%"),
        pc.day(F("d")) > 3,
        F("i").cast(pa.string()) == "2",
        F("x").cast(pa.float32()) <= 0,
        pc.abs(F("y")) >= 1.5,
        pc.negate(F("i")) > 1,
    ]
    return draw(st.sampled_from(made))


EXPRESSIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: both[0] & both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] | both[1]),
        st.tuples(inner, inner).map(lambda both: pc.coalesce(*both)),
        st.tuples(inner, inner).map(lambda both: pc.xor(*both)),
        inner.map(lambda one: ~one),
        inner.map(lambda one: pc.is_null(one)),
        inner.map(lambda one: pc.if_else(one, pc.scalar(False), pc.scalar(True))),
    ),
    max_leaves=4,
)


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


def _holds(piece: pa.Table, condition: pc.Expression) -> bool:
    """What Arrow cannot compute (a large integer, compared with a fraction) is no match."""
    try:
        return bool(piece.filter(condition).num_rows)
    except pa.ArrowInvalid:
        return False


@given(tables(), EXPRESSIONS, st.integers(1, 3))
def test_a_row_group_without_a_match_is_all_that_is_passed_over(table: pa.Table, condition: pc.Expression, size: int) -> None:
    kept = matching_row_groups(footer(table, row_group_size=size), RowFilter.of(condition, SCHEMA))
    pieces = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    holding = {number for number, piece in enumerate(pieces) if _holds(piece, condition)}
    assert holding <= set(kept), f"{condition} passes over rows of {table.to_pylist()}"


_CONFIG = {
    "hoodie.table.name": "t",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.version": "6",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
@pytest.mark.parametrize(
    ("kind", "physical", "created", "texts", "misled"),
    [
        (pa.decimal128(10, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-mr version 1.8.1 (build 4aba)", {}, True),
        (pa.decimal128(10, 2), "BYTE_ARRAY", "", {}, True),
        (pa.decimal128(10, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-mr version 1.10.1 (build a89df8f)", {}, False),
        (pa.decimal128(10, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-mr version 1.13.1", {}, False),
        (pa.decimal128(10, 2), "FIXED_LEN_BYTE_ARRAY", "parquet-cpp-arrow version 26.0.1", {}, False),
        (pa.decimal128(10, 2), "INT64", "parquet-mr version 1.8.1", {}, False),
        (pa.date32(), "INT32", "parquet-mr version 1.10.1", {b"org.apache.spark.version": b"2.4.4"}, True),
        (pa.timestamp("us", "UTC"), "INT64", "parquet-mr version 1.12.2", {b"org.apache.spark.legacyDateTime": b""}, True),
        (pa.date32(), "INT32", "parquet-mr version 1.12.2", {b"org.apache.spark.version": b"3.5.1"}, False),
        (pa.string(), "BYTE_ARRAY", "parquet-mr version 1.8.1", {b"org.apache.spark.version": b"2.4.4"}, False),
    ],
)
def test_bounds_of_old_writers_are_not_believed(
    kind: pa.DataType, physical: str, created: str, texts: dict[bytes, bytes], misled: bool
) -> None:
    assert misleads(SimpleNamespace(created_by=created, metadata=texts), kind, physical) is misled


PARTITIONED = ["i", "n", "s", "b", "d", "e"]


@given(tables(), EXPRESSIONS, st.data(), st.integers(1, 4))
def test_a_partition_without_a_match_is_passed_over(table: pa.Table, condition: pc.Expression, data: st.DataObject, run: int) -> None:
    names = data.draw(st.permutations(PARTITIONED))[: data.draw(st.integers(1, 2))]
    config = TableConfig({**_CONFIG, "hoodie.table.partition.fields": ",".join(names)})
    try:
        paths = key_generator_of(config).partition_paths(table).to_pylist()
    except PartitionValueError:
        assume(False)
    rules, wanted = PathRules.of(config, SCHEMA), RowFilter.of(condition, SCHEMA)
    assert rules is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pruning, "_RUN", run)
        patch.setattr(pruning, "_KNOWN", BoundedCache(100))
        kept = set(Scope(wanted, rules).within(paths))
    known = [dict(zip(names, rules.values(path) or [], strict=False)) for path in paths]
    exact = [_all(F(name) == value for name, value in values.items() if value is not None and value.is_valid) for values in known]
    holding = {path for number, path in enumerate(paths) if _holds(table.slice(number, 1), condition)}
    assert holding <= kept, f"{condition} passes over rows of {table.to_pylist()}"
    alone = {path for path, may in zip(paths, wanted.may_hold(exact), strict=True) if may}
    assert kept <= alone or not set(names) & set(wanted.columns), f"{condition} keeps what it rules out by itself, of {table.to_pylist()}"


def _all(parts: Iterable[pc.Expression]) -> pc.Expression:
    return functools.reduce(lambda left, right: left & right, parts, pc.scalar(True))


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (F("nope") == 1, "No match for FieldRef.Name(nope)"),
        (F("I") == 1, "No match for FieldRef.Name(I)"),
        (F(0) == 1, "non-name field_refs"),
        (F("i") + 1, "must evaluate to bool"),
        (F("i") == "x", "no kernel matching input types"),
        (F("r", "nope") == 1, "No match for"),
        (pc.scalar(None), "must evaluate to bool"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(condition: pc.Expression, reason: str) -> None:
    with pytest.raises(OptionError, match="its columns are i, n, x") as caught:
        RowFilter.of(condition, SCHEMA)
    assert reason in caught.value.message


@given(EXPRESSIONS)
def test_the_columns_of_a_filter_are_enough_for_it_and_none_is_too_many(condition: pc.Expression) -> None:
    wanted = RowFilter.of(condition, SCHEMA)
    fields = [wanted.schema.field(name) for name in wanted.columns]
    assert pa.schema(fields).empty_table().filter(condition).num_rows == 0
    for left_out in wanted.columns:
        with pytest.raises(pa.ArrowException):
            pa.schema([field for field in fields if field.name != left_out]).empty_table().filter(condition)


def test_a_filter_that_names_no_column_reads_one_and_is_the_same_for_all_rows() -> None:
    table = pa.table({"n": [1, 2]})
    assert [RowFilter.of(pc.scalar(one), table.schema).rows(table).num_rows for one in (True, False)] == [2, 0]


def test_a_filter_that_cannot_be_computed_for_a_row_is_an_option_error_and_rules_nothing_out() -> None:
    wanted = RowFilter.of(pc.scalar(100) / F("n") > 3, SCHEMA)
    zero, five = pa.scalar(0, pa.int64()), pa.scalar(50, pa.int64())
    assert wanted.may_hold([F("n") == zero, F("n") == five]) == [True, False]
    with pytest.raises(OptionError, match="divide by zero"):
        wanted.rows(pa.table({"n": [0]}, schema=pa.schema([("n", pa.int64())])))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (F("n") > 4, [2]),
        (F("n") == 3, [1]),
        (F("x") > 4, [2]),
        (F("s") == "c", [1]),
        (F("s").is_null(), [2]),
        (F("d") < dt.date(2026, 1, 3), [0]),
        (F("e") >= Decimal("5.00"), [2]),
        (F("t") == dt.datetime(2026, 1, 3, tzinfo=UTC), [1]),
        (pc.is_nan(F("x")), [0, 1, 2]),
        (F("x") != 1, [0, 1, 2]),
        (F("gone") == 1, []),
        (F("gone").is_null(), [0, 1, 2]),
        ((F("n") == 3) & (F("s") == "a"), []),
        ((F("n") == 3) | (F("s") == "a"), [0, 1]),
    ],
)
def test_what_statistics_rule_out_is_passed_over(condition: pc.Expression, kept: list[int]) -> None:
    numbers = list(range(1, 7))
    rows = {
        "n": numbers,
        "x": [float(one) for one in numbers],
        "s": ["a", "b", "c", "d", None, None],
        "d": [dt.date(2026, 1, one) for one in numbers],
        "t": [dt.datetime(2026, 1, one, tzinfo=UTC) for one in numbers],
        "e": [Decimal(one) for one in numbers],
    }
    stored = pa.schema([field for field in SCHEMA if field.name in rows])
    metadata = footer(pa.table(rows, schema=stored), row_group_size=2)
    wanted = RowFilter.of(condition, pa.schema([*stored, ("gone", pa.int64())]))
    assert matching_row_groups(metadata, wanted) == kept


@pytest.mark.parametrize(
    ("stored", "kind", "values", "condition", "kept"),
    [
        (pa.int32(), pa.int64(), [1, 2], F("c") > 2, []),
        (pa.int32(), pa.float64(), [1, 2], F("c") > 2.5, []),
        (pa.float32(), pa.float64(), [0.3, 0.7], F("c") <= 0.3, [0]),
        (pa.float32(), pa.float64(), [0.3, 0.7], F("c") > 0.7, []),
        (pa.int64(), pa.float32(), [2**24, 2**24 + 1], F("c") >= 2.0**24, [0]),
        (pa.int32(), pa.decimal128(12, 2), [1, 2], F("c") > pa.scalar(Decimal("2.00")), []),
        # As text 10 comes before 9, so bounds of numbers say nothing.
        (pa.int32(), pa.string(), [9, 10], F("c") < "9", [0]),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), [1, 2], F("c") > pa.scalar(2000, pa.timestamp("us", "UTC")), []),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"), [1, 2], F("c") > pa.scalar(2000, pa.timestamp("us", "UTC")), [0]),
    ],
)
def test_statistics_of_a_column_that_was_widened_count_where_that_keeps_the_order(
    stored: pa.DataType, kind: pa.DataType, values: list[int], condition: pc.Expression, kept: list[int]
) -> None:
    metadata = footer(pa.table({"c": pa.array(values, stored)}))
    assert matching_row_groups(metadata, RowFilter.of(condition, pa.schema([("c", kind)]))) == kept


def test_files_without_statistics_are_read() -> None:
    metadata = footer(pa.table({"n": [1, 2]}), write_statistics=False)
    assert matching_row_groups(metadata, RowFilter.of(F("n") > 5, pa.schema([("n", pa.int64())]))) == [0]


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        (pa.table({"x": [0.1, 0.1]}), F("x").cast("float32") == pa.scalar(0.1, pa.float32())),
        (pa.table({"x": [0.1, 0.1]}), F("x").cast("float32") > 0.1),
        (pa.table({"x": [1e300]}), F("x").cast("float32") == float("inf")),
        (pa.table({"x": pa.array([16_777_217], pa.int32())}), F("x").cast("float32", safe=False).cast("float64") == 16_777_216.0),
    ],
)
def test_what_a_cast_rounds_is_not_compared_with_what_is_stored(table: pa.Table, condition: pc.Expression) -> None:
    assert table.filter(condition).num_rows == table.num_rows
    written = io.BytesIO()
    pq.write_table(table, written)
    assert matching_row_groups(pq.read_metadata(written), RowFilter.of(condition, table.schema)) == [0]


@pytest.mark.parametrize("letter", ["\u00fc", "\u20ac", "\U0001f600"])
def test_texts_that_arrow_cuts_in_the_middle_of_a_letter_are_asked_for(letter: str) -> None:
    for before in ("", "a", "ab", "abc"):
        text = before + letter * 100
        table = pa.table({"s": [text, "b", None]})
        wanted = RowFilter.of(F("s").isin([text]), table.schema)
        assert wanted.rows(table)["s"].to_pylist() == [text]
        assert matching_row_groups(footer(table), wanted) == [0]
        with pytest.raises(OptionError, match="does not fit the table"):
            RowFilter.of(F("other").isin([text]), table.schema)
