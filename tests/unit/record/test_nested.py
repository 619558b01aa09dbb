"""Paths into columns: what they lead to, and schemas with something changed there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.errors import SchemaIncompatibleError
from lakehouse_engine.record.nested import alone, field_at, placed, with_new_fields

INNER = pa.struct([("F", pa.int32()), ("g", pa.string())])
SCHEMA = pa.schema([
    ("id", pa.int32()),
    ("st", INNER),
    ("xs", pa.list_(pa.field("element", INNER))),
    ("m", pa.map_(pa.string(), pa.field("value", pa.struct([("w", pa.int32())])))),
])  # fmt: skip


@pytest.mark.parametrize(
    ("path", "spelled", "kind"),
    [
        (("ID",), ("id",), pa.int32()),
        (("ST", "f"), ("st", "F"), pa.int32()),
        (("xs", "Element", "G"), ("xs", "element", "g"), pa.string()),
        (("m", "value", "w"), ("m", "value", "w"), pa.int32()),
    ],
)
def test_a_path_leads_through_structs_lists_and_maps(path: tuple[str, ...], spelled: tuple[str, ...], kind: pa.DataType) -> None:
    found, field = field_at(SCHEMA, path)
    assert (found, field.type) == (spelled, kind)


@pytest.mark.parametrize("path", [("no",), ("st", "no"), ("id", "f"), ("xs", "f"), ("m", "key"), ()])
def test_a_path_that_leads_nowhere_says_where_it_ends(path: tuple[str, ...]) -> None:
    with pytest.raises(SchemaIncompatibleError):
        field_at(SCHEMA, path)


def test_a_field_alone_is_in_what_is_around_it_and_nothing_else() -> None:
    new = pa.field("h", pa.int64())
    assert alone(SCHEMA, (), new) == new
    assert alone(SCHEMA, ("st",), new) == pa.field("st", pa.struct([new]))
    assert alone(SCHEMA, ("xs", "element"), new).type.value_type == pa.struct([new])
    assert alone(SCHEMA, ("m", "value"), new).type.item_type == pa.struct([new])
    for parent in (("id",), ("xs",), ("m",)):
        with pytest.raises(SchemaIncompatibleError, match="can be given none"):
            alone(SCHEMA, parent, new)


def test_columns_and_fields_are_placed() -> None:
    assert placed(SCHEMA, ("m",), None).names == ["m", "id", "st", "xs"]
    assert placed(SCHEMA, ("ID",), "XS").names == ["st", "xs", "id", "m"]
    moved = placed(SCHEMA, ("xs", "element", "g"), None)
    assert [field.name for field in moved.field("xs").type.value_type] == ["g", "F"]
    assert moved.field("st") == SCHEMA.field("st")
    for path, after in ((("id",), "id"), (("st", "F"), "id"), (("m", "value"), None)):
        with pytest.raises(SchemaIncompatibleError):
            placed(SCHEMA, path, after)


def test_new_fields_come_behind_the_known_ones_whose_types_stay() -> None:
    given = pa.schema([
        ("new", pa.string()),
        ("ID", pa.int64()),
        ("st", pa.struct([("h", pa.int32()), ("f", pa.string())])),
        ("xs", pa.list_(pa.struct([("r", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
    ])  # fmt: skip
    grown = pa.schema(with_new_fields(list(SCHEMA), list(given)))
    assert grown.names == ["id", "st", "xs", "m", "new"]
    assert grown.field("id").type == pa.int32()
    assert grown.field("st").type == pa.struct([*INNER, ("h", pa.int32())])
    assert [field.name for field in grown.field("xs").type.value_type] == ["F", "g", "r"]
    assert [field.name for field in grown.field("m").type.item_type] == ["w", "v"]
