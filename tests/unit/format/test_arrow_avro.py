from __future__ import annotations

import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehouse_engine.errors import MetadataError, SchemaIncompatibleError, UnsupportedTypeError
from lakehouse_engine.format.avro.arrow_avro import (
    arrow_to_avro,
    avro_to_arrow,
    decimal_size,
    sanitize_name,
    table_avro_schema,
    with_meta_columns,
    without_meta_columns,
)
from lakehouse_engine.model.keys import META_COLUMNS

_UTC = pa.timestamp("us", tz="UTC")
_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


def _decimals(digits: int) -> st.SearchStrategy[pa.DataType]:
    return st.integers(0, digits).map(lambda scale: pa.decimal128(digits, scale))


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3, unique_by=lambda member: member[0]).map(pa.struct)


_PLAIN = [pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(), _UTC]
_TYPES = st.recursive(
    st.sampled_from(_PLAIN) | st.integers(1, 38).flatmap(_decimals),
    lambda inner: inner.map(pa.list_) | inner.map(lambda kind: pa.map_(pa.string(), kind)) | _structs(inner),
    max_leaves=6,
)
_SCHEMAS = _structs(_TYPES).map(lambda struct: pa.schema(list(struct)))


@settings(max_examples=200)
@given(_SCHEMAS)
def test_any_schema_of_column_types_comes_back(schema: pa.Schema) -> None:
    text = arrow_to_avro(schema, "t_record", "hoodie.t")
    assert avro_to_arrow(text).equals(schema)
    assert avro_to_arrow(with_meta_columns(text), drop_meta=True).equals(schema)
    assert without_meta_columns(with_meta_columns(text)) == text
    # A parser that is not ours takes it, so full names are unique and defaults fit their types.
    fastavro.parse_schema(json.loads(text))
    assert all(union[0] == "null" and len(union) == 2 for union in _unions(json.loads(text)))


def _unions(avro: Any) -> list[list[Any]]:
    if isinstance(avro, list):
        return [avro, *(union for branch in avro for union in _unions(branch))]
    if not isinstance(avro, dict):
        return []
    if avro["type"] == "record":
        assert all(field["default"] is None for field in avro["fields"])
        return [union for field in avro["fields"] for union in _unions(field["type"])]
    return _unions(avro.get("items")) + _unions(avro.get("values"))


def test_types_are_named_as_spark_names_them() -> None:
    inner = pa.struct([("n", pa.decimal128(5, 1))])
    schema = pa.schema([("d", pa.decimal128(10, 2)), ("s", pa.list_(pa.struct([("inner", inner), ("day", pa.date32())])))])
    fields = json.loads(table_avro_schema("shop", schema))["fields"]
    assert fields[0] == {
        "name": "d",
        "type": [
            "null",
            {
                "type": "fixed",
                "name": "fixed",
                "namespace": "hoodie.shop.shop_record.d",
                "size": 5,
                "logicalType": "decimal",
                "precision": 10,
                "scale": 2,
            },
        ],
        "default": None,
    }
    struct = fields[1]["type"][1]["items"][1]
    assert (struct["name"], struct["namespace"]) == ("s", "hoodie.shop.shop_record")
    nested = struct["fields"][0]["type"][1]
    assert (nested["name"], nested["namespace"]) == ("inner", "hoodie.shop.shop_record.s")
    assert nested["fields"][0]["type"][1]["namespace"] == "hoodie.shop.shop_record.s.inner.n"


def test_narrow_and_large_forms_are_written_as_what_they_hold() -> None:
    schema = pa.schema(
        [("a", pa.int8()), ("b", pa.int16()), ("c", pa.large_string()), ("d", pa.large_binary()), ("e", pa.large_list(pa.int8()))]
    )
    read = avro_to_arrow(arrow_to_avro(schema, "r", ""))
    assert read.types == [pa.int32(), pa.int32(), pa.string(), pa.binary(), pa.list_(pa.int32())]


def test_columns_are_optional_whatever_arrow_says() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    assert json.loads(arrow_to_avro(schema, "r", "n"))["fields"] == [{"name": "id", "type": ["null", "long"], "default": None}]


def test_a_comment_is_the_doc_of_a_column() -> None:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"comment": "the kéy"}), pa.field("x", pa.int64())])
    text = arrow_to_avro(schema, "r", "n")
    assert json.loads(text)["fields"][0] == {"name": "id", "type": ["null", "long"], "doc": "the kéy", "default": None}
    assert avro_to_arrow(text).equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.map_(pa.int32(), pa.string()), "c"),
        (pa.null(), "c"),
        (pa.duration("us"), "c"),
        (pa.month_day_nano_interval(), "c"),
        (pa.time64("us"), "c"),
        (pa.time32("ms"), "c"),
        (pa.date64(), "c"),
        (pa.uint64(), "c"),
        (pa.float16(), "c"),
        (pa.timestamp("ns", tz="UTC"), "c"),
        (pa.timestamp("us"), "c"),
        (pa.decimal256(50, 2), "c"),
        (pa.decimal128(5, -2), "c"),
        (pa.dense_union([pa.field("a", pa.int32()), pa.field("b", pa.string())]), "c"),
        (pa.list_(pa.null()), "c.element"),
        (pa.map_(pa.string(), pa.time64("us")), "c.value"),
        (pa.struct([("x", pa.list_(pa.struct([("y", pa.duration("s"))])))]), "c.x.element.y"),
    ],
)
def test_types_without_a_column_are_refused_by_path(kind: pa.DataType, column: str) -> None:
    with pytest.raises(UnsupportedTypeError) as caught:
        arrow_to_avro(pa.schema([("ok", pa.int32()), ("c", kind)]), "r", "n")
    assert caught.value.context["column"] == column


def test_timestamps_without_zone_pass_where_they_are_allowed() -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    text = arrow_to_avro(schema, "r", "n", allow_timestamp_ntz=True)
    assert json.loads(text)["fields"][0]["type"][1]["logicalType"] == "local-timestamp-micros"
    assert avro_to_arrow(text) == schema


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.b", "a-b", "€", "a\n"])
def test_names_that_avro_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(SchemaIncompatibleError, match="rename"):
        arrow_to_avro(pa.schema([(name, pa.int32())]), "r", "n")


def test_letters_of_any_script_are_names() -> None:
    schema = pa.schema([("größe", pa.int32()), ("名前", pa.struct([("x_1", pa.int32())]))])
    assert avro_to_arrow(arrow_to_avro(schema, "r", "n")) == schema


@pytest.mark.parametrize(
    ("name", "sanitized"), [("orders", "orders"), ("my-table", "my__table"), ("1st", "__st"), ("a.b", "a__b"), ("ü", "__"), ("_x", "_x")]
)
def test_table_names_are_sanitized_as_hudi_does(name: str, sanitized: str) -> None:
    assert sanitize_name(name) == sanitized
    record = json.loads(table_avro_schema(name, pa.schema([("a", pa.int32())])))
    assert (record["name"], record["namespace"]) == (f"{sanitized}_record", f"hoodie.{sanitized}")


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (5, 3), (9, 4), (10, 5), (15, 7), (18, 8), (19, 9), (38, 16)])
def test_decimals_take_the_fewest_bytes(precision: int, size: int) -> None:
    assert decimal_size(precision) == size


def test_meta_columns_stand_first_and_once() -> None:
    text = with_meta_columns(with_meta_columns(arrow_to_avro(pa.schema([("a", pa.int32()), ("_hoodie_is_deleted", pa.bool_())]), "r", "n")))
    fields = json.loads(text)["fields"]
    assert [field["name"] for field in fields] == [*META_COLUMNS, "a", "_hoodie_is_deleted"]
    assert fields[0] == {"name": "_hoodie_commit_time", "type": ["null", "string"], "doc": "", "default": None}


def _record(*types: Any) -> str:
    fields = [{"name": f"c{number}", "type": kind} for number, kind in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": fields})


@pytest.mark.parametrize(
    ("avro", "kind"),
    [
        (["int", "null"], pa.int32()),
        (["null", "int"], pa.int32()),
        ("int", pa.int32()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "long", "logicalType": "timestamp-millis"}, _UTC),
        ({"type": "long", "logicalType": "timestamp-micros"}, _UTC),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("us")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 3}, pa.decimal128(7, 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 7}, pa.decimal128(7, 0)),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": ["null", "int"]}, pa.int32()),
    ],
)
def test_forms_of_other_writers_are_read(avro: Any, kind: pa.DataType) -> None:
    assert avro_to_arrow(_record(avro)).field("c0").type == kind


def test_a_type_is_known_by_its_name_afterwards() -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    money = {"type": "fixed", "name": "m.money", "size": 4, "logicalType": "decimal", "precision": 8, "scale": 2}
    schema = avro_to_arrow(_record(point, ["null", "point"], "n.point", money, "m.money"))
    assert schema.types == [pa.struct([("x", pa.int32())])] * 3 + [pa.decimal128(8, 2)] * 2


@pytest.mark.parametrize(
    "avro",
    [
        "null",
        ["null"],
        [],
        ["int", "string"],
        ["null", "int", "string"],
        {"type": "int", "logicalType": "time-millis"},
        {"type": "long", "logicalType": "time-micros"},
        {"type": "long", "logicalType": "timestamp-nanos"},
        {"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"},
        {"type": "fixed", "name": "f", "size": 12},
        {"type": "bytes", "logicalType": "decimal", "precision": 39},
        {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 4},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "array", "items": {"type": "record", "name": "r2", "fields": [{"name": "again", "type": ["null", "r2"]}]}},
        "unknown",
        "n.r",
    ],
)
def test_types_that_no_column_has_are_refused_with_the_column(avro: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match="c1"):
        avro_to_arrow(_record("int", avro))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"string"',
        '{"type": "record"}',
        '{"type": "record", "name": "r", "fields": {}}',
        '{"type": "record", "name": "r", "fields": [{"name": "a"}]}',
        '{"type": "record", "fields": [{"name": "a", "type": "int"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": 1}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "record", "name": "x"}}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array"}}]}',
        "[" * 100_000,
    ],
)
def test_text_that_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(MetadataError):
        avro_to_arrow(text)
