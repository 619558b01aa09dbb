"""Type text of DDL as Arrow types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakehouse_engine.errors import UnsupportedTypeError
from lakehouse_engine.model.constraints import Constraints
from lakehouse_engine.sql.grammar.statements import ColumnDefinition
from lakehouse_engine.sql.grammar.types import arrow_schema, arrow_type, constraints_of

UTC_TIME = pa.timestamp("us", tz="UTC")
TYPES = {
    "int": pa.int32(),
    "SmallInt": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "varchar(255)": pa.string(),
    "string": pa.string(),
    "timestamp": UTC_TIME,
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
    "numeric(12)": pa.decimal128(12, 0),
    "decimal(38, 18)": pa.decimal128(38, 18),
    "array<array<int>>": pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32())))),
    "map<string, array<date>>": pa.map_(pa.string(), pa.list_(pa.field("element", pa.date32()))),
    "struct<a: int, `b c` decimal(4, 2) comment 'x', d: struct<e: binary>>": pa.struct(
        [
            pa.field("a", pa.int32()),
            pa.field("b c", pa.decimal128(4, 2)),
            pa.field("d", pa.struct([pa.field("e", pa.binary())])),
        ]
    ),
}


@pytest.mark.parametrize("text", TYPES)
def test_types_are_read(text: str) -> None:
    assert arrow_type(text, "c") == TYPES[text]


@pytest.mark.parametrize(
    "text",
    ["text", "decimal(40)", "decimal(3, 4)", "map<int, string>", "array", "array<int", "int int", "interval year", "varchar(x)", "void"],
)
def test_other_types_are_refused_with_the_columns_name(text: str) -> None:
    with pytest.raises(UnsupportedTypeError) as caught:
        arrow_type(text, "my_column")
    assert caught.value.context["column"] == "my_column"


@pytest.mark.parametrize("text", ["varchar", "char(3)", "array<varchar(3)>", "struct<a: int not null>"])
def test_what_would_not_be_kept_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedTypeError, match="my_column"):
        arrow_type(text, "my_column")


def test_what_columns_may_hold_is_kept_beside_their_types() -> None:
    columns = [ColumnDefinition("id", "bigint", nullable=False), ColumnDefinition("x", "VarChar( 7 )"), ColumnDefinition("y", "string")]
    assert constraints_of(columns) == Constraints(("id",), (("x", 7),))


def test_columns_become_a_schema() -> None:
    columns = [ColumnDefinition("id", "bigint", nullable=False), ColumnDefinition("x", "string")]
    assert arrow_schema(columns) == pa.schema([pa.field("id", pa.int64()), pa.field("x", pa.string())])
