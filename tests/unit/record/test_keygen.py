from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import PartitionValueError, RecordKeyError, UnsupportedTableError
from lakehouse_engine.model.table_config import TableConfig
from lakehouse_engine.record.keys.keygen import FieldKeyGenerator, choose_key_generator, generated_keys, key_generator_of


def keys(generator: FieldKeyGenerator, **columns: object) -> list[str]:
    return generator.record_keys(pa.table(columns)).to_pylist()


def config(**properties: str) -> TableConfig:
    named = {f"hoodie.table.{name.replace('_', '.')}": value for name, value in properties.items()}
    return TableConfig({"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "6", **named})


@pytest.mark.parametrize("bad", [None, ""])
def test_null_or_empty_key_is_refused_with_count_and_rows(bad: str | None) -> None:
    with pytest.raises(RecordKeyError, match=r"2 of 4 rows.*'id'.*row numbers 1, 3.*filter") as caught:
        keys(FieldKeyGenerator(("id",)), id=["a", bad, "b", bad])
    assert caught.value.context["rows"] == "2"


def test_long_list_of_bad_rows_is_cut() -> None:
    with pytest.raises(RecordKeyError, match=r"row numbers 0, 1, 2, 3, 4, \.\.\."):
        keys(FieldKeyGenerator(("id",)), id=pa.nulls(9, pa.string()))


@pytest.mark.parametrize("bad", [float("nan"), -0.0, float("inf"), 2.0**54])
def test_floating_point_key_that_engines_disagree_on_is_refused(bad: float) -> None:
    assert keys(FieldKeyGenerator(("id",)), id=[0.0, 1.5]) == ["0.0", "1.5"]
    with pytest.raises(RecordKeyError, match=r"1 of 2 rows.*row numbers 1"):
        keys(FieldKeyGenerator(("id",)), id=[1.0, bad])


def test_binary_key_is_refused() -> None:
    with pytest.raises(RecordKeyError, match="'id' is binary"):
        keys(FieldKeyGenerator(("id",)), id=[b"x"])


def test_composite_key_names_its_fields_and_marks_null_and_empty_parts() -> None:
    made = keys(FieldKeyGenerator(("a", "b")), a=["x", None, "", "b:c"], b=pa.array([1, 2, 3, None], pa.int32()))
    assert made == ["a:x,b:1", "a:__null__,b:2", "a:__empty__,b:3", "a:b:c,b:__null__"]


def test_composite_key_without_any_value_is_refused() -> None:
    with pytest.raises(RecordKeyError, match=r"2 of 3 rows.*all record key columns.*row numbers 1, 2"):
        keys(FieldKeyGenerator(("a", "b")), a=["x", None, ""], b=[None, "", None])


@pytest.mark.parametrize("bad", ["__null__", "__empty__", "1,b:2"])
def test_composite_key_value_that_can_be_taken_for_another_is_refused(bad: str) -> None:
    with pytest.raises(RecordKeyError, match=r"1 of 2 rows.*row numbers 1"):
        keys(FieldKeyGenerator(("a", "b")), a=["x", bad], b=["y", "z"])


def test_composite_key_keeps_harmless_colons_and_commas() -> None:
    assert keys(FieldKeyGenerator(("a", "b")), a=["d,e", "b:c", ",c:1"], b=["x:y", ",", ",a:9"]) == [
        "a:d,e,b:x:y",
        "a:b:c,b:,",
        "a:,c:1,b:,a:9",
    ]
    assert keys(FieldKeyGenerator(("a", "b")), a=["f:1,b:2"], b=[3]) == ["a:f:1,b:2,b:3"]


PARTS = st.sampled_from(["", "x", ",a:", ",b:", ",c:", "a:", ",", ":"])


@given(st.lists(st.tuples(*[st.lists(PARTS, max_size=3).map("".join) for _ in range(3)]), min_size=1, max_size=6, unique=True))
def test_accepted_composite_keys_are_as_distinct_as_their_rows(rows: list[tuple[str, str, str]]) -> None:
    generator = FieldKeyGenerator(("a", "b", "c"))
    accepted = {}
    for row in rows:
        try:
            [key] = keys(generator, a=[row[0]], b=[row[1]], c=[row[2]])
        except RecordKeyError:
            continue
        assert accepted.setdefault(key, row) == row


def test_every_collision_of_two_text_fields_is_refused() -> None:
    pieces = ["x", ",b:", ",", "a:"]
    values = ["".join(parts) for size in (1, 2, 3) for parts in itertools.product(pieces, repeat=size)]
    seen: dict[str, tuple[str, str]] = {}
    for pair in itertools.product(values[:30], repeat=2):
        try:
            [key] = keys(FieldKeyGenerator(("a", "b")), a=[pair[0]], b=[pair[1]])
        except RecordKeyError:
            continue
        assert seen.setdefault(key, pair) == pair


def test_single_field_of_the_complex_generator_is_bare_unless_prefixed() -> None:
    table = config(keygenerator_class="org.apache.hudi.keygen.ComplexKeyGenerator", recordkey_fields="id", partition_fields="p,q")
    rows = pa.table({"id": [7], "p": ["x"], "q": [1]})
    assert key_generator_of(table).record_keys(rows).to_pylist() == ["7"]
    assert key_generator_of(table, prefix_single=True).record_keys(rows).to_pylist() == ["id:7"]
    assert key_generator_of(table).partition_paths(rows).to_pylist() == ["x/1"]


def test_prefix_does_not_matter_to_other_generators() -> None:
    table = config(keygenerator_type="SIMPLE", recordkey_fields="id", partition_fields="p")
    assert key_generator_of(table, prefix_single=True).record_keys(pa.table({"id": [7], "p": ["x"]})).to_pylist() == ["7"]


def test_table_without_partitions_has_the_empty_path() -> None:
    generator = key_generator_of(config(recordkey_fields="id"))
    assert generator.partition_paths(pa.table({"id": [1, 2]})).to_pylist() == ["", ""]
    assert generator.partition_paths(pa.table({"id": pa.array([], pa.int64())})).to_pylist() == []


def test_key_and_partition_columns_may_be_nested_or_spelled_otherwise() -> None:
    generator = key_generator_of(config(recordkey_fields="s.id", partition_fields="P"))
    rows = pa.table({"s": [{"id": 5}], "p": ["x"]})
    assert generator.record_keys(rows).to_pylist() == ["5"]
    assert generator.partition_paths(rows).to_pylist() == ["x"]


def test_missing_columns_are_named() -> None:
    generator = key_generator_of(config(recordkey_fields="id", partition_fields="p"))
    with pytest.raises(RecordKeyError, match="no column 'id'"):
        generator.record_keys(pa.table({"x": [1]}))
    with pytest.raises(PartitionValueError, match="no column 'p'"):
        generator.partition_paths(pa.table({"x": [1]}))
    with pytest.raises(RecordKeyError, match=r"no field 's\.y'"):
        key_generator_of(config(recordkey_fields="s.y")).record_keys(pa.table({"s": [{"x": 1}]}))


def test_keyless_table_generates_keys_and_makes_none_of_columns() -> None:
    generator = key_generator_of(config(keygenerator_class="x.SimpleKeyGenerator", partition_fields="p"))
    assert generator.record_key_fields == ()
    with pytest.raises(RecordKeyError, match="generated"):
        generator.record_keys(pa.table({"p": ["x"]}))
    assert generated_keys("001", 2, 3).to_pylist() == ["001_2_0", "001_2_1", "001_2_2"]
    assert generated_keys("001", 2, 0).to_pylist() == []


def test_unknown_generator_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTableError, match="GlobalDeleteKeyGenerator is not known"):
        key_generator_of(config(keygenerator_class="org.apache.hudi.keygen.GlobalDeleteKeyGenerator", recordkey_fields="id"))


CUSTOM = "org.apache.hudi.keygen.CustomKeyGenerator"
TIMES = {"hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP", "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd"}


def test_custom_generator_takes_kinds_from_the_option_or_from_the_table() -> None:
    rows = pa.table({"id": [1], "region": ["eu"], "at": [1_700_000_000]})
    stored = config(keygenerator_class=CUSTOM, recordkey_fields="id", partition_fields="region,at")
    option = {"hoodie.datasource.write.partitionpath.field": "region:SIMPLE,at:TIMESTAMP"}
    assert key_generator_of(stored, {**TIMES, **option}).partition_paths(rows).to_pylist() == ["eu/20231114"]
    newer = config(keygenerator_type="CUSTOM", recordkey_fields="id", partition_fields="region\\:simple,at\\:timestamp".replace("\\", ""))
    assert key_generator_of(newer, TIMES).partition_paths(rows).to_pylist() == ["eu/20231114"]


def test_custom_generator_without_kinds_or_with_other_fields_is_refused() -> None:
    table = config(keygenerator_class=CUSTOM, recordkey_fields="id", partition_fields="region,at")
    with pytest.raises(UnsupportedTableError, match="does not store which of the fields"):
        key_generator_of(table, TIMES)
    with pytest.raises(UnsupportedTableError, match="not about the table's partition fields"):
        key_generator_of(table, {"hoodie.datasource.write.partitionpath.field": "region:SIMPLE"})


@pytest.mark.parametrize(
    ("key", "partition", "expected"),
    [
        (("a",), (), "NonpartitionedKeyGenerator"),
        (("a", "b"), (), "NonpartitionedKeyGenerator"),
        (("a",), ("p",), "SimpleKeyGenerator"),
        ((), ("p",), "SimpleKeyGenerator"),
        (("a", "b"), ("p",), "ComplexKeyGenerator"),
        (("a",), ("p", "q"), "ComplexKeyGenerator"),
    ],
)
def test_generator_of_a_new_table(key: tuple[str, ...], partition: tuple[str, ...], expected: str) -> None:
    assert choose_key_generator(key, partition) == expected
