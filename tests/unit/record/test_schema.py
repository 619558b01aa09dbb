from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.errors import ReservedColumnError, SchemaIncompatibleError
from lakehouse_engine.record.schema import check_reserved, conform, reconcile
from lakehouse_engine.record.types import TIMESTAMP, TIMESTAMP_NTZ

TABLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64())])


@pytest.mark.parametrize("name", ["_hoodie_commit_time", "_HOODIE_record_key", "_hoodie_operation"])
def test_meta_column_in_any_case_is_reserved(name: str) -> None:
    with pytest.raises(ReservedColumnError, match=name):
        check_reserved(pa.schema([("id", pa.int64()), (name, pa.string())]))


def test_is_deleted_must_be_boolean() -> None:
    check_reserved(pa.schema([("_hoodie_is_deleted", pa.bool_())]))
    for field in (("_hoodie_is_deleted", pa.string()), ("_Hoodie_Is_Deleted", pa.bool_())):
        with pytest.raises(ReservedColumnError, match="boolean"):
            check_reserved(pa.schema([field]))


def test_reordered_and_differently_cased_batch_gets_the_tables_columns() -> None:
    batch = pa.table({"SCORE": pa.array([1.5]), "Name": pa.array(["x"]), "id": pa.array([1], pa.int32())})
    assert reconcile(TABLE, batch.schema, evolve=False) == TABLE
    assert conform(batch, TABLE).to_pylist() == [{"id": 1, "name": "x", "score": 1.5}]
    assert conform(batch, TABLE).schema == TABLE


@pytest.mark.parametrize(
    ("incoming", "word"),
    [
        (pa.schema([("id", pa.int64()), ("name", pa.string())]), "score"),
        (TABLE.append(pa.field("extra", pa.date32())), "extra"),
    ],
)
def test_other_columns_need_evolution(incoming: pa.Schema, word: str) -> None:
    with pytest.raises(SchemaIncompatibleError, match=f"{word}.*reconcile.schema"):
        reconcile(TABLE, incoming, evolve=False)
    reconcile(TABLE, incoming, evolve=True)


def test_evolution_appends_new_columns_as_nullable_and_fills_missing_ones() -> None:
    batch = pa.table({"extra": pa.array([3], pa.int32()), "id": pa.array([1], pa.int64())})
    incoming = pa.schema([pa.field("extra", pa.int32(), nullable=False), ("id", pa.int64())])
    schema = reconcile(TABLE, incoming, evolve=True)
    assert schema.names == ["id", "name", "score", "extra"]
    assert schema.field("extra").nullable
    assert conform(batch, schema).to_pylist() == [{"id": 1, "name": None, "score": None, "extra": 3}]


WIDER = [
    (pa.int32(), pa.int64()),
    (pa.int32(), pa.float32()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.float32(), pa.float64()),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDER, ids=str)
def test_widening_needs_evolution_and_narrower_batches_do_not(narrow: pa.DataType, wide: pa.DataType) -> None:
    small, large = pa.schema([("c", narrow)]), pa.schema([("c", wide)])
    assert reconcile(large, small, evolve=False) == large
    assert reconcile(small, large, evolve=True) == large
    with pytest.raises(SchemaIncompatibleError, match=f"column c is {narrow} in the table and {wide} in the batch.*widen"):
        reconcile(small, large, evolve=False)
    assert conform(pa.table({"c": pa.array([1, None], narrow)}), large).column("c").to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("table", "batch"),
    [
        (pa.string(), pa.int64()),
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.int32()),
        (pa.date32(), TIMESTAMP),
        (TIMESTAMP, pa.date32()),
        (TIMESTAMP, TIMESTAMP_NTZ),
        (pa.decimal128(10, 2), pa.decimal128(12, 2)),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.decimal128(10, 2), pa.int32()),
        (pa.decimal128(10, 2), pa.float64()),
        (pa.struct([("a", pa.int32())]), pa.int32()),
        (pa.list_(pa.int32()), pa.list_(pa.string())),
        (pa.string(), pa.binary()),
    ],
    ids=str,
)
def test_other_type_is_refused_with_both_types(table: pa.DataType, batch: pa.DataType) -> None:
    for evolve in (False, True):
        with pytest.raises(SchemaIncompatibleError) as caught:
            reconcile(pa.schema([("c", table)]), pa.schema([("c", batch)]), evolve=evolve)
        assert caught.value.context["column"].startswith("c")


def test_smaller_decimals_and_integers_fit_a_decimal_column() -> None:
    schema = pa.schema([("d", pa.decimal128(14, 3)), ("i", pa.decimal128(12, 2))])
    batch = pa.table({"d": pa.array([Decimal("-1.25"), None], pa.decimal128(10, 2)), "i": pa.array([7, None], pa.int32())})
    assert reconcile(schema, batch.schema, evolve=False) == schema
    assert conform(batch, schema).to_pylist() == [{"d": Decimal("-1.250"), "i": Decimal("7.00")}, {"d": None, "i": None}]


def test_integer_that_a_float_cannot_hold_is_refused() -> None:
    batch = pa.table({"c": pa.array([2**53 + 1], pa.int64())})
    with pytest.raises(SchemaIncompatibleError, match="do not fit"):
        conform(batch, pa.schema([("c", pa.float64())]))


def test_column_without_nulls_must_be_there_and_have_none() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    with pytest.raises(SchemaIncompatibleError, match="takes no nulls"):
        reconcile(schema, pa.schema([("v", pa.string())]), evolve=True)
    with pytest.raises(SchemaIncompatibleError, match="takes no nulls"):
        conform(pa.table({"id": pa.array([None], pa.int64()), "v": ["x"]}), schema)


NESTED = pa.schema(
    [
        (
            "s",
            pa.struct(
                [
                    ("x", pa.int64()),
                    ("y", pa.string()),
                    ("z", pa.list_(pa.field("element", pa.struct([("p", pa.float64()), ("q", pa.int32())])))),
                ]
            ),
        ),
        ("m", pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.string())]))),
    ]
)
NESTED_BATCH = pa.table(
    {
        "m": pa.array([[("a", {"x": 1})], None, [("b", None), ("c", {"x": 3})], []], pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        "S": pa.array(
            [{"z": [{"q": 1}, None], "X": 1}, None, {"z": None, "X": 2}, {"z": [], "X": None}],
            pa.struct([("z", pa.list_(pa.field("element", pa.struct([("q", pa.int32())])))), ("X", pa.int32())]),
        ),
    }
)


def test_nested_fields_are_filled_reordered_and_widened() -> None:
    assert reconcile(NESTED, NESTED_BATCH.schema, evolve=True) == NESTED
    expected = [
        {"s": {"x": 1, "y": None, "z": [{"p": None, "q": 1}, None]}, "m": [("a", {"x": 1, "y": None})]},
        {"s": None, "m": None},
        {"s": {"x": 2, "y": None, "z": None}, "m": [("b", None), ("c", {"x": 3, "y": None})]},
        {"s": {"x": None, "y": None, "z": []}, "m": []},
    ]
    for start, length in ((0, 4), (1, 2), (2, 2), (3, 1), (1, 0)):
        conformed = conform(NESTED_BATCH.slice(start, length), NESTED)
        conformed.validate(full=True)
        assert conformed.to_pylist() == expected[start : start + length]


def test_nested_differences_without_evolution_name_the_path() -> None:
    with pytest.raises(SchemaIncompatibleError, match=r"column s\.y "):
        reconcile(NESTED, NESTED_BATCH.schema, evolve=False)


def test_new_nested_field_is_added_at_the_end_of_its_struct() -> None:
    table = pa.schema([("l", pa.list_(pa.field("element", pa.struct([("a", pa.int32())]))))])
    incoming = pa.schema([("l", pa.list_(pa.field("element", pa.struct([("b", pa.string()), ("a", pa.int64())]))))])
    merged = reconcile(table, incoming, evolve=True)
    assert merged.field("l").type.value_type == pa.struct([("a", pa.int64()), ("b", pa.string())])


def test_conform_refuses_columns_that_the_schema_lacks() -> None:
    with pytest.raises(SchemaIncompatibleError, match="extra"):
        conform(pa.table({"id": [1], "name": ["x"], "score": [1.0], "extra": [1]}), TABLE)


def test_fitting_columns_are_not_copied() -> None:
    batch = pa.table({"id": pa.array([1], pa.int64()), "name": ["x"], "score": [1.0]})
    assert conform(batch, TABLE).column("id").chunk(0).buffers()[1].address == batch.column("id").chunk(0).buffers()[1].address


def test_required_nested_field_takes_nulls_only_under_a_null_struct() -> None:
    schema = pa.schema([("s", pa.struct([pa.field("x", pa.int64(), nullable=False), ("y", pa.string())]))])
    narrow = pa.struct([("x", pa.int32())])
    conformed = conform(pa.table({"s": pa.array([None, {"x": 1}, {"x": 2}], narrow)}).slice(0, 2), schema)
    conformed.validate(full=True)
    assert conformed.to_pylist() == [{"s": None}, {"s": {"x": 1, "y": None}}]
    with pytest.raises(SchemaIncompatibleError, match=r"s\.x takes no nulls"):
        conform(pa.table({"s": pa.array([{"x": None}], narrow)}), schema)
