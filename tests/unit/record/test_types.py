from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from lakehouse_engine.errors import SchemaIncompatibleError, UnsupportedTypeError
from lakehouse_engine.record.types import TIMESTAMP, TIMESTAMP_NTZ, canonical_schema, canonical_table

CONVERTED = [
    (pa.int8(), pa.int32()),
    (pa.int16(), pa.int32()),
    (pa.uint8(), pa.int32()),
    (pa.uint16(), pa.int32()),
    (pa.uint32(), pa.int64()),
    (pa.float16(), pa.float32()),
    (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()),
    (pa.large_binary(), pa.binary()),
    (pa.binary_view(), pa.binary()),
    (pa.binary(4), pa.binary()),
    (pa.date64(), pa.date32()),
    (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
    (pa.timestamp("s", "UTC"), TIMESTAMP),
    (pa.timestamp("ms", "Europe/Berlin"), TIMESTAMP),
    (pa.timestamp("ns", "+05:30"), TIMESTAMP),
    (pa.decimal256(38, 10), pa.decimal128(38, 10)),
    (pa.decimal64(12, 2), pa.decimal128(12, 2)),
    (pa.large_list(pa.int8()), pa.list_(pa.field("element", pa.int32()))),
    (pa.list_(pa.int16(), 2), pa.list_(pa.field("element", pa.int32()))),
    (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int32())),
    (pa.struct([("a", pa.list_(pa.struct([("b", pa.int8())])))]), pa.struct([("a", pa.list_(pa.struct([("b", pa.int32())])))])),
]
KEPT = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.decimal128(10, 2),
    TIMESTAMP,
]


@pytest.mark.parametrize(("given", "expected"), CONVERTED + [(kind, kind) for kind in KEPT], ids=str)
def test_type_becomes_its_canonical_form(given: pa.DataType, expected: pa.DataType) -> None:
    assert canonical_schema(pa.schema([("c", given)])).field("c").type == expected


@pytest.mark.parametrize("kind", [given for given, _ in CONVERTED], ids=str)
def test_empty_and_null_columns_convert(kind: pa.DataType) -> None:
    table = pa.table({"c": pa.nulls(2, kind)})
    assert canonical_table(table).column("c").null_count == 2
    assert canonical_table(table.slice(0, 0)).num_rows == 0


def test_values_survive_the_conversion() -> None:
    table = pa.table(
        {
            "a": pa.array(["x", None, "y"]).dictionary_encode(),
            "b": pa.array([[1, None], None, []], pa.large_list(pa.int8())),
            "c": pa.array(
                [{"x": 1, "y": ["q"]}, None, {"x": None, "y": None}], pa.struct([("x", pa.uint16()), ("y", pa.list_(pa.large_string()))])
            ),
            "d": pa.array([Decimal("1.2"), None, Decimal("-3.45")], pa.decimal256(30, 2)),
            "t": pa.array([1_000, None, -2_000], pa.timestamp("ns", "Asia/Tokyo")),
        }
    )
    converted = canonical_table(table, untrusted=True)
    for name in ("a", "b", "c", "d"):
        assert converted.column(name).to_pylist() == table.column(name).to_pylist()
    assert converted.column("t").cast(pa.int64()).to_pylist() == [1, None, -2]


def test_lists_are_named_element_and_nulls_are_allowed() -> None:
    schema = canonical_schema(
        pa.schema([pa.field("l", pa.list_(pa.field("item", pa.int64(), nullable=False)), nullable=False)], {"k": "v"})
    )
    assert schema.field("l").nullable
    assert schema.field("l").type.value_field.name == "element"
    assert schema.field("l").type.value_field.nullable
    assert not schema.metadata


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint64(),
        pa.null(),
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.map_(pa.int32(), pa.string()),
        pa.decimal256(39, 2),
        pa.decimal128(5, -2),
        pa.struct([]),
        pa.dense_union([pa.field("x", pa.int32())]),
        pa.timestamp("us"),
    ],
    ids=str,
)
def test_type_that_hudi_cannot_hold_is_refused_by_path(kind: pa.DataType) -> None:
    for schema, path in (
        (pa.schema([("c", kind)]), "c"),
        (pa.schema([("c", pa.struct([("inner", pa.list_(kind))]))]), "c.inner.element"),
    ):
        with pytest.raises(UnsupportedTypeError) as caught:
            canonical_schema(schema)
        assert caught.value.context["column"] == path
        assert repr(path) in str(caught.value)


def test_timestamp_without_zone_is_kept_when_allowed() -> None:
    schema = canonical_schema(pa.schema([("t", pa.timestamp("ms"))]), allow_timestamp_ntz=True)
    assert schema.field("t").type == TIMESTAMP_NTZ


def test_nanoseconds_that_are_not_microseconds_are_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"'t'.*lose data"):
        canonical_table(pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC"))}))


@pytest.mark.parametrize("name", ["a b", "1a", "", "a-b", "ü", "a.b", "a\n"])
def test_name_that_avro_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(SchemaIncompatibleError, match="rename"):
        canonical_schema(pa.schema([(name, pa.int32())]))
    with pytest.raises(SchemaIncompatibleError, match="rename"):
        canonical_schema(pa.schema([("s", pa.struct([(name, pa.int32())]))]))


def test_names_that_differ_in_case_only_are_refused_at_every_depth() -> None:
    fields = [("id", pa.int32()), ("ID", pa.int32())]
    for schema in (pa.schema(fields), pa.schema([("s", pa.struct(fields))])):
        with pytest.raises(SchemaIncompatibleError, match="case does not count"):
            canonical_schema(schema)


def test_bytes_that_are_not_text_are_refused_from_untrusted_sources() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
    with pytest.raises(UnsupportedTypeError, match=r"'c'.*binary"):
        canonical_table(pa.table({"c": broken}), untrusted=True)


def test_canonical_columns_are_not_copied() -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int64())})
    assert canonical_table(table).column("a").chunk(0).buffers()[1].address == table.column("a").chunk(0).buffers()[1].address


@pytest.mark.parametrize(
    ("names", "alias"),
    [
        (["größe"], "`größe` as grosse"),
        (["user name"], "`user name` as user_name"),
        (["2nd"], "`2nd` as _2nd"),
        (["a.b", "A_B"], "`a.b` as a_b_"),
        (["a`b"], "`a``b` as a_b"),
        (["Prénom – client"], "`Prénom – client` as Prenom_client"),
        (["価格"], "rename it"),
    ],
)
def test_a_name_that_avro_cannot_hold_is_refused_with_an_alias(names: list[str], alias: str) -> None:
    with pytest.raises(SchemaIncompatibleError) as caught:
        canonical_schema(pa.schema([(name, pa.int64()) for name in names]))
    assert alias in str(caught.value)
    assert caught.value.context["column"] == names[0]
