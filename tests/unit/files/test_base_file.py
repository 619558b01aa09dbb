from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import CorruptFileError, FormatError, MissingFileError, SchemaIncompatibleError, UnsupportedTableError
from lakehouse_engine.files import base_file
from lakehouse_engine.files.base_file import DICTIONARY_TYPE, iter_base_file, projected_schema, read_base_file
from lakehouse_engine.files.projection import match_name
from lakehouse_engine.model.files import BaseFile
from lakehouse_engine.model.keys import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from lakehouse_engine.storage.local import LocalStorage

FILE = BaseFile("p=1", "2f1b3c4d-0000-4000-8000-000000000001-0", "0-1-2", "20240101000000000")
TIMESTAMP = pa.timestamp("us", tz="UTC")


def meta(rows: int) -> dict[str, list[str]]:
    return {name: [f"{name}{row % 2}" for row in range(rows)] for name in META_COLUMNS}


def store(folder: Path, table: pa.Table, **options: object) -> LocalStorage:
    (folder / "p=1").mkdir()
    pq.write_table(table, folder / FILE.path, **options)
    return LocalStorage(str(folder))


def read_one(folder: Path, stored: pa.Array, target: pa.DataType, **options: object) -> pa.ChunkedArray:
    """The column of a file that stores `stored`, as a table with a column of type `target` reads it."""
    storage = store(folder, pa.table({"c": stored}), **options)
    table = read_base_file(storage, FILE, pa.schema([("c", target)]))
    table.validate(full=True)
    assert str(table.schema.field("c").type) == str(target)
    return table.column("c")


def test_meta_columns_come_first_and_those_with_few_values_as_dictionaries(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({**meta(4), "id": [1, 2, 3, 4]}))
    table = read_base_file(storage, FILE, pa.schema([("id", pa.int64())]), meta_columns=True)
    assert table.column_names == [*META_COLUMNS, "id"]
    assert [field.type == DICTIONARY_TYPE for field in table.schema] == [True, False, False, True, True, False]
    assert table.select(list(META_COLUMNS)).to_pydict() == meta(4)


def test_columns_come_in_the_order_asked_for_and_may_name_meta_columns(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({**meta(2), "a": [1, 2], "b": ["x", "y"]}))
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    table = read_base_file(storage, FILE.path, schema, columns=["b", RECORD_KEY, "A"])
    assert table.column_names == ["b", RECORD_KEY, "a"]


def test_no_columns_still_count_rows(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({"a": [1, 2, 3]}))
    assert read_base_file(storage, FILE, pa.schema([("a", pa.int64())]), columns=[]).num_rows == 3


def test_a_column_that_the_table_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(SchemaIncompatibleError, match="no column 'c'"):
        projected_schema(pa.schema([("a", pa.int64())]), ["c"])
    with pytest.raises(SchemaIncompatibleError, match="no meta column"):
        projected_schema(pa.schema([("a", pa.int64())]), None, ["a"])


def test_a_column_that_the_file_does_not_have_is_null(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({"a": [1, 2]}))
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.int32()))), ("d", pa.decimal128(9, 2))])
    table = read_base_file(storage, FILE, schema, meta_columns=[COMMIT_TIME])
    assert table.schema.equals(projected_schema(schema, None, [COMMIT_TIME]))
    assert table.to_pydict() == {COMMIT_TIME: [None, None], "a": [1, 2], "b": [None, None], "d": [None, None]}


def test_without_a_schema_the_stored_columns_come_in_canonical_types(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({**meta(1), "a": pa.array([1], pa.int16())}))
    table = read_base_file(storage, FILE, None)
    assert table.schema == pa.schema([("a", pa.int32())])


def test_names_match_without_regard_to_case_at_every_depth(tmp_path: Path) -> None:
    target = pa.struct([("x", pa.int64()), ("new", pa.string())])
    storage = store(tmp_path, pa.table({"St": pa.array([{"X": 1}, None, {"X": None}])}))
    table = read_base_file(storage, FILE, pa.schema([("st", target)]))
    assert table.to_pydict() == {"st": [{"x": 1, "new": None}, None, {"x": None, "new": None}]}


def test_names_that_differ_in_case_only_are_refused_unless_one_is_exact(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({"A": [1], "a": [2]}))
    assert read_base_file(storage, FILE, pa.schema([("a", pa.int64())])).to_pydict() == {"a": [2]}
    storage = LocalStorage(str(tmp_path))
    pq.write_table(pa.table({"AB": [1], "aB": [2]}), tmp_path / FILE.path)
    with pytest.raises(SchemaIncompatibleError, match="but for case"):
        read_base_file(storage, FILE, pa.schema([("ab", pa.int64())]))


@pytest.mark.parametrize(
    ("stored", "target", "values"),
    [
        (pa.array([1, None], pa.int8()), pa.int32(), [1, None]),
        (pa.array([-5, 7], pa.int16()), pa.int32(), [-5, 7]),
        (pa.array([2**31 - 1, None], pa.int32()), pa.int64(), [2**31 - 1, None]),
        (pa.array([2**53 + 1], pa.int64()), pa.float64(), [float(2**53)]),
        (pa.array([3], pa.int32()), pa.float32(), [3.0]),
        (pa.array([3], pa.int32()), pa.decimal128(12, 2), [Decimal("3.00")]),
        (pa.array([12, None], pa.int64()), pa.string(), ["12", None]),
        (pa.array([0.5, None], pa.float32()), pa.float64(), [0.5, None]),
        # As Hudi makes it: by the number's text.
        (pa.array([0.3, -1e10], pa.float32()), pa.float64(), [0.3, -1e10]),
        (pa.array([0.1, 1e10, None], pa.float32()), pa.string(), ["0.1", "1.0E10", None]),
        (pa.array([0.1, float("nan"), -0.0, None]), pa.string(), ["0.1", "NaN", "-0.0", None]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.decimal128(10, 3), [Decimal("1.500")]),
        (pa.array([b"abc"], pa.binary(3)), pa.binary(), [b"abc"]),
        (pa.array(["ü"]), pa.binary(), ["ü".encode()]),
        (pa.array([b"abc"]), pa.string(), ["abc"]),
        (pa.array(["x"], pa.large_string()), pa.string(), ["x"]),
    ],
)
def test_stored_types_widen_to_the_table_type(tmp_path: Path, stored: pa.Array, target: pa.DataType, values: list[object]) -> None:
    assert read_one(tmp_path, stored, target).to_pylist() == values


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        (pa.array([1], pa.int64()), pa.int32()),
        (pa.array([1.0], pa.float64()), pa.float32()),
        (pa.array([1.0], pa.float64()), pa.int64()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([True]), pa.int32()),
        (pa.array([1], pa.int32()), pa.date32()),
        (pa.array([[1]]), pa.int64()),
        (pa.array([{"a": "x"}]), pa.struct([("a", pa.int64())])),
    ],
)
def test_types_that_do_not_widen_are_refused_with_column_and_file(tmp_path: Path, stored: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(SchemaIncompatibleError, match="does not widen") as caught:
        read_one(tmp_path, stored, target)
    assert caught.value.context["path"] == FILE.path
    assert caught.value.context["column"].startswith("c")


def test_a_value_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaIncompatibleError, match="does not fit"):
        read_one(tmp_path, pa.array([Decimal("123.45")], pa.decimal128(5, 2)), pa.decimal128(3, 2))


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_timestamps_of_any_unit_come_as_microseconds_in_utc(tmp_path: Path, unit: str) -> None:
    moment = dt.datetime(1582, 10, 4, 1, 2, 3, 4000, tzinfo=UTC)
    assert read_one(tmp_path, pa.array([moment, None], pa.timestamp(unit, tz="UTC")), TIMESTAMP).to_pylist() == [moment, None]


def test_int96_timestamps_come_as_microseconds_in_utc(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=UTC)
    stored = pa.array([moment], TIMESTAMP)
    assert read_one(tmp_path, stored, TIMESTAMP, use_deprecated_int96_timestamps=True, store_schema=False).to_pylist() == [moment]


def test_decimals_stored_as_integers_come_as_decimals(tmp_path: Path) -> None:
    stored = pa.array([Decimal("-1.50"), None], pa.decimal128(9, 2))
    column = read_one(tmp_path, stored, pa.decimal128(9, 2), store_decimal_as_integer=True, store_schema=False)
    assert column.to_pylist() == [Decimal("-1.50"), None]


def test_a_list_comes_out_the_same_in_every_parquet_form(tmp_path: Path) -> None:
    target = pa.list_(pa.field("element", pa.int64()))
    stored = pa.array([[1, 2], [], None, [3]], pa.list_(pa.field("array", pa.int32())))
    assert read_one(tmp_path, stored, target).to_pylist() == [[1, 2], [], None, [3]]


def test_nested_values_keep_nulls_at_every_level(tmp_path: Path) -> None:
    stored_type = pa.list_(pa.field("bag", pa.struct([("m", pa.map_(pa.string(), pa.int32())), ("n", pa.int8())])))
    target = pa.list_(pa.field("element", pa.struct([("n", pa.int32()), ("m", pa.map_(pa.string(), pa.int64())), ("z", pa.string())])))
    values = [[{"m": [("k", 1), ("l", None)], "n": 1}, None], None, [{"m": None, "n": None}], []]
    column = read_one(tmp_path, pa.array(values, stored_type), target)
    assert column.to_pylist() == [
        [{"n": 1, "m": [("k", 1), ("l", None)], "z": None}, None],
        None,
        [{"n": None, "m": None, "z": None}],
        [],
    ]


def test_row_groups_come_one_by_one_and_can_be_chosen(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({"a": [1, 2, 3, 4, 5]}), row_group_size=2)
    schema = pa.schema([("a", pa.int64())])
    assert [group.column("a").to_pylist() for group in iter_base_file(storage, FILE, schema)] == [[1, 2], [3, 4], [5]]
    assert [group.column("a").to_pylist() for group in iter_base_file(storage, FILE, schema, row_groups=[2, 0])] == [[5], [1, 2]]


def test_filters_keep_rows_of_which_the_expression_is_true(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({**meta(4), "a": [1, 2, None, 4]}), row_group_size=3)
    schema = pa.schema([("a", pa.int64())])
    condition = (pc.field("a") > 1) & (pc.field(COMMIT_TIME) == f"{COMMIT_TIME}1")
    assert read_base_file(storage, FILE, schema, meta_columns=[COMMIT_TIME], filters=condition).column("a").to_pylist() == [2, 4]


def test_a_file_without_rows_has_the_schema_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    storage = store(tmp_path, pa.schema([("a", pa.int32())]).empty_table())
    assert read_base_file(storage, FILE, schema).equals(schema.empty_table())


def test_a_missing_file_names_the_instant_that_wrote_it(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=FILE.instant_time) as caught:
        read_base_file(LocalStorage(str(tmp_path)), FILE, None)
    assert caught.value.context == {"path": FILE.path, "instant": FILE.instant_time}


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_damaged_file_is_a_format_error_naming_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / FILE.path).write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_base_file(LocalStorage(str(tmp_path)), FILE, None)
    assert caught.value.context["path"] == FILE.path


def test_a_damaged_page_is_a_format_error_naming_the_file(tmp_path: Path) -> None:
    storage = store(tmp_path, pa.table({"a": list(range(1000))}), compression="zstd")
    data = bytearray((tmp_path / FILE.path).read_bytes())
    data[60:160] = bytes(100)
    (tmp_path / FILE.path).write_bytes(bytes(data))
    with pytest.raises(FormatError) as caught:
        read_base_file(storage, FILE, None)
    assert caught.value.context["path"] == FILE.path


def test_rows_of_pages_that_arrow_passes_over_are_missed(tmp_path: Path) -> None:
    """Of a page whose type is damaged it reads nothing, and says nothing if no other column is read. Headers have checksums in our files
    only, and those of large files in object stores are not looked at.
    """
    storage = store(tmp_path, pa.table({"a": range(10), "b": range(10)}), use_dictionary=False, row_group_size=5)
    assert read_base_file(storage, FILE, pa.schema([("b", pa.int64())])).num_rows == 10
    assert read_base_file(storage, FILE, None, columns=[]).num_rows == 10
    header = pq.read_metadata(tmp_path / FILE.path).row_group(1).column(1).data_page_offset
    content = bytearray((tmp_path / FILE.path).read_bytes())
    assert content[header : header + 2] == b"\x15\x00", "the type is a data page"
    content[header + 1] = 2
    (tmp_path / FILE.path).write_bytes(bytes(content))
    with pytest.raises(CorruptFileError, match="row group 1 has 0 rows, and its footer says 5"):
        read_base_file(storage, FILE, pa.schema([("b", pa.int64())]))


def test_base_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="Parquet"):
        read_base_file(LocalStorage(str(tmp_path)), "a-0_0-1-2_20240101000000000.orc", None)


def test_a_name_is_of_the_column_that_is_exactly_called_so(tmp_path: Path) -> None:
    """A file of before there was a column that differs from another in case only has nothing of it."""
    pq.write_table(pa.table({"A": ["upper"]}), tmp_path / "a.parquet")
    schema = pa.schema([("A", pa.string()), ("a", pa.string())])
    assert read_base_file(LocalStorage(str(tmp_path)), "a.parquet", schema).to_pylist() == [{"A": "upper", "a": None}]
    assert read_base_file(LocalStorage(str(tmp_path)), "a.parquet", pa.schema([("a", pa.string())])).to_pylist() == [{"a": "upper"}]


def test_the_names_of_a_files_columns_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow makes the list anew each time that it is asked for: of 500 columns that took half of a read."""
    given: list[Sequence[str]] = []

    def seen(names: Sequence[str], wanted: str, path: str = "", others: Sequence[str] = ()) -> int | None:
        given.extend([names] if path else [])
        return match_name(names, wanted, path, others)

    monkeypatch.setattr(base_file, "match_name", seen)
    columns = pa.table({f"c{number}": [number] for number in range(20)})
    assert read_base_file(store(tmp_path, columns), FILE, columns.schema).equals(columns)
    assert len(given) == 20
    assert len({id(names) for names in given}) == 1
