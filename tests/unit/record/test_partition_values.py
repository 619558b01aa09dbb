from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse_engine.errors import PartitionValueError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import key_generator_of
from lakehouse_engine.record.keys.partition_path import DEFAULT_PARTITION
from lakehouse_engine.record.keys.partition_values import PathRules

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.string()),
        ("i", pa.int32()),
        ("n", pa.int64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("e", pa.decimal128(12, 8)),
        ("x", pa.float64()),
        ("t", pa.timestamp("us", "UTC")),
        ("who", pa.struct([("name", pa.string())])),
    ]
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "s": st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
    | st.sampled_from(["007", "%41", "a=b", "a/b", "'", " ", "1.0"]),
    "i": st.integers(-(2**31), 2**31 - 1),
    "n": st.integers(-(2**63), 2**63 - 1),
    "b": st.booleans(),
    "d": st.dates(dt.date(1000, 1, 1), dt.date(9999, 1, 1)),
    "e": st.integers(-(10**12) + 1, 10**12 - 1).map(lambda units: Decimal(units).scaleb(-8)),
}


def config(generator: str | None, fields: list[str], **properties: str) -> TableConfig:
    named = {} if generator is None else {"hoodie.table.keygenerator.class": f"org.apache.hudi.keygen.{generator}"}
    required = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6"}
    return TableConfig({**required, **named, "hoodie.table.partition.fields": ",".join(fields), **properties})


def rules(generator: str | None, fields: list[str], **properties: str) -> PathRules | None:
    return PathRules.of(config(generator, fields, **properties), SCHEMA)


@given(st.data())
def test_a_path_tells_the_values_that_it_was_made_of_or_nothing(data: st.DataObject) -> None:
    names = data.draw(st.permutations(sorted(VALUES)))[: data.draw(st.integers(1, 3))]
    styles = {
        "hoodie.datasource.write.hive_style_partitioning": data.draw(st.sampled_from(["true", "false"])),
        "hoodie.datasource.write.partitionpath.urlencode": data.draw(st.sampled_from(["true", "false"])),
    }
    table = config("ComplexKeyGenerator", names, **styles)
    row = {name: data.draw(VALUES[name] | st.none()) for name in names}
    try:
        paths = key_generator_of(table).partition_paths(pa.Table.from_pylist([row], schema=SCHEMA))
    except PartitionValueError:
        assume(False)
    found = PathRules.of(table, SCHEMA)
    assert found is not None
    values = found.values(paths[0].as_py())
    if values is None:
        # Slashes in a value are directories, and then it cannot be told where it ends.
        assert "/" in "".join(str(one) for one in row.values() if isinstance(one, str))
        return
    for name, value in zip(names, values, strict=True):
        if name == "s" and not row[name]:
            assert value is None, "null and the empty text share a directory"
        else:
            assert value is not None
            assert (value.as_py(), value.type) == (row[name], SCHEMA.field(name).type)


@pytest.mark.parametrize(
    ("generator", "fields"),
    [
        (None, ["s"]),
        ("TimestampBasedKeyGenerator", ["s"]),
        ("CustomKeyGenerator", ["s:SIMPLE"]),
        ("SomebodysOwnKeyGenerator", ["s"]),
        ("NonpartitionedKeyGenerator", []),
        ("SimpleKeyGenerator", ["who.name"]),
        ("SimpleKeyGenerator", ["gone"]),
    ],
)
def test_paths_that_may_be_made_otherwise_tell_nothing(generator: str | None, fields: list[str]) -> None:
    assert rules(generator, fields) is None


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("x", "1.5"),
        ("t", "1767225600000000"),
        ("i", "007"),
        ("i", "1.0"),
        ("i", "99999999999"),
        ("d", "20454"),
        ("d", "2026-1-1"),
        ("d", "2026-02-30"),
        ("b", "True"),
        ("e", "NaN"),
        ("e", "1.234567891"),
        ("s", DEFAULT_PARTITION),
    ],
)
def test_a_text_that_may_stand_for_another_value_tells_nothing(field: str, text: str) -> None:
    found = rules("SimpleKeyGenerator", [field])
    assert found is not None
    assert found.values(text) == [None]


def test_a_path_of_another_style_tells_nothing() -> None:
    found = rules("ComplexKeyGenerator", ["s", "i"], **{"hoodie.datasource.write.hive_style_partitioning": "true"})
    assert found is not None
    assert [found.values(path) for path in ("a/1", "s=a", "s=a/n=1", "")] == [None] * 4
