"""Arguments that no caller should pass, to every public method: a typed error with nothing changed, or the right answer.

A wrong number of arguments, or an unknown keyword, is Python's own TypeError.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.functions import Language, StoredFunction
from lakehouse_engine.errors import LakehouseError
from tests.support.untouched import files_below, make_table

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("s", pa.struct([("a", pa.int64())]))])
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
GOOD = pa.Table.from_pylist([{"id": "kept", "n": 1, "at": NOW, "s": {"a": 1}}], schema=SCHEMA)

VALUES: dict[str, Any] = {
    "none": None,
    "true": True,
    "zero": 0,
    "minus": -1,
    "huge": 10**400,
    "float": 1.5,
    "nan": float("nan"),
    "infinity": float("-inf"),
    "decimal": decimal.Decimal("NaN"),
    "bytes": b"id",
    "list": ["id"],
    "list of numbers": [1, None],
    "tuple": (),
    "set": {"id"},
    "dict": {"id": 1},
    "dict of objects": {1: object()},
    "object": object(),
    "type": str,
    "function": len,
    "date": dt.date(2026, 1, 1),
    "datetime": dt.datetime(1, 1, 1),  # noqa: DTZ001 - naive on purpose
    "aware": NOW,
    "numpy": np.array([1, 2]),
    "arrow": pa.scalar(1),
    "empty": "",
    "blank": " \t",
    "nul": "a\0b",
    "newline": "a\nb",
    "surrogate": "a\ud800",
    "dots": "../../etc",
    "root": "/",
    "quotes": "`'\";--",
    "long": "x" * 100_000,
    "number": "9" * 40,
    "arabic digits": "\u0662\u0660\u0662\u0666",
    "path": Path("a"),
}
"""By what they are."""


def methods(kind: type) -> dict[str, list[str]]:
    """Public methods of a class and the names of their arguments; keywords that go on to `_write` are added."""
    found = {}
    for name, member in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = [one for one in inspect.signature(member).parameters.values() if one.name != "self"]
        names = [one.name for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
        if len(names) < len(parameters):
            names += ["options", "extra_metadata", "replace_schema", "given_keys", "as_given"]
        found[name] = names
    return found


SANE: dict[str, Callable[[], Any]] = {
    "data": lambda: GOOD,
    "keys": lambda: GOOD.select(["id"]),
    "replaced": lambda: pa.table({"_hoodie_commit_seqno": ["x"]}),
    "partitions": list,
    "savepoint": lambda: "nothing",
    "name": lambda: "shop.other",
    "new_name": lambda: "shop.newer",
    "source": lambda: "shop.orders",
    "target": lambda: "shop.copied",
    "by": lambda: "shop.newer",
    "folder": lambda: ".hidden",
    "names": lambda: {"shop.orders"},
    "function": lambda: StoredFunction(Language.SQL, (), "int", "1"),
    "schema": lambda: SCHEMA,
    "sql": lambda: "select 1",
    "text": lambda: "select 1",
    "spark": lambda: None,
}
"""What the other required arguments of a call are. Options of a write never are."""

REQUIRED = inspect.Parameter.empty


def calls(kind: type) -> Iterator[tuple[str, str]]:
    for name, arguments in methods(kind).items():
        for argument in arguments:
            yield name, argument


def call(target: Any, method: str, argument: str, value: Any) -> Any:
    bound = getattr(target, method)
    given = {
        one.name: SANE[one.name]()
        for one in inspect.signature(bound).parameters.values()
        if one.default is REQUIRED and one.kind is not inspect.Parameter.VAR_KEYWORD and one.name != argument
    }
    given[argument] = value
    if argument in ("begin", "end", "on_restore"):
        given["query"] = "incremental"
    if "dry_run" in inspect.signature(bound).parameters and argument != "dry_run":
        given["dry_run"] = True
    return bound(**given)


def problems(target: Any, method: str, argument: str, folder: Path) -> list[str]:
    found = []
    for what, value in VALUES.items():
        before = files_below(folder)
        try:
            call(target, method, argument, value)
        except LakehouseError:
            if files_below(folder) != before:
                found.append(f"{method}({argument}={what}): refused, and something was changed")
        except Exception as error:  # noqa: BLE001 - any other error is what is looked for
            found.append(f"{method}({argument}={what}): {type(error).__name__}: {str(error)[:100]}")
    return found


@pytest.mark.parametrize(("method", "argument"), list(calls(HoodieTable)))
def test_methods_of_a_table_answer_with_typed_errors(method: str, argument: str, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    table.insert(GOOD)
    found = problems(table, method, argument, tmp_path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("method", "argument"), list(calls(Lakehouse)))
def test_methods_of_a_warehouse_answer_with_typed_errors(method: str, argument: str, tmp_path: Path) -> None:
    make_table(tmp_path / "shop" / "orders", SCHEMA).insert(GOOD)
    found = problems(Lakehouse(str(tmp_path)), method, argument, tmp_path)
    assert not found, "\n".join(found)


def column(values: Any, name: str = "n", rows: int = 2) -> pa.Table:
    """Good rows, but for one column."""
    batch = pa.concat_tables([GOOD] * rows).set_column(0, "id", pa.array([f"k{number}" for number in range(rows)]))
    return batch.set_column(batch.column_names.index(name), name, values)


def frame(**columns: Any) -> pd.DataFrame:
    good = {"id": ["a", "b"], "n": [1, 2], "at": [NOW, NOW], "s": [{"a": 1}, {"a": 2}]}
    return pd.DataFrame({**good, **columns})


def reader_that_raises() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield GOOD.to_batches()[0]
        raise RuntimeError("the source is gone")

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


class Stream:
    """An object that says that it has Arrow data, and has none."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ZeroDivisionError


class Strange(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.strange")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Strange:
        return cls()


DATA: dict[str, Callable[[], Any]] = {
    "objects": lambda: frame(n=[object(), object()]),
    "mixed types": lambda: frame(n=[1, "two"]),
    "mixed texts": lambda: frame(id=["a", b"b"]),
    "no zone": lambda: frame(at=[NOW.replace(tzinfo=None)] * 2),
    "doubled columns": lambda: pd.concat([frame(), frame()[["n"]]], axis=1),
    "columns that differ in case": lambda: frame(N=[1, 2]),
    "numbers as column names": lambda: frame().rename(columns={"n": 5}),
    "two levels of columns": lambda: frame().set_axis(pd.MultiIndex.from_product([["x"], ["id", "n", "at", "s"]]), axis=1),
    "intervals": lambda: frame(n=pd.interval_range(0, 2)),
    "periods": lambda: frame(n=pd.period_range("2026", periods=2, freq="Y")),
    "complex numbers": lambda: frame(n=[1j, 2j]),
    "surrogates": lambda: frame(id=["a", "\ud800"]),
    "structs of other types": lambda: frame(s=[{"a": 1}, "b"]),
    "a series": lambda: frame()["n"],
    "an empty frame": pd.DataFrame,
    "no columns": lambda: pa.table({}),
    "a dense union": lambda: column(
        pa.UnionArray.from_dense(pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["x"])])
    ),
    "an interval": lambda: column(pa.array([(1, 2, 3), None], pa.month_day_nano_interval())),
    "a duration": lambda: column(pa.array([1, 2], pa.duration("us"))),
    "an extension type": lambda: column(pa.ExtensionArray.from_storage(Strange(), pa.array([1, 2]))),
    "a dictionary of structs": lambda: column(pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([{"a": "x"}, {"a": "y"}])), "s"),
    "fields of nothing": lambda: column(pa.array([{}, {}], pa.struct([])), "s"),
    "lists of nulls without a type": lambda: column(pa.array([[None], None], pa.list_(pa.null()))),
    "numbers that do not fit": lambda: column(pa.array([2**64 - 1, 1], pa.uint64())),
    "a view of lists": lambda: column(pa.array([[1], [2]], pa.list_view(pa.int64()))),
    "run-end encoded texts": lambda: column(pa.RunEndEncodedArray.from_arrays([1, 2], ["x", "y"])),
    "broken utf-8": lambda: column(
        pa.Array.from_buffers(pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe")]), "id"
    ),
    "null keys": lambda: column(pa.array([None, "x"]), "id"),
    "a reader that raises": reader_that_raises,
    "a stream that raises": Stream,
    "a generator": lambda: (batch for batch in GOOD.to_batches()),
    "rows": GOOD.to_pylist,
    "a dict": GOOD.to_pydict,
    "a capsule": lambda: GOOD.schema,
}


@pytest.mark.parametrize("write", ["bulk_insert", "insert", "upsert", "insert_overwrite", "insert_overwrite_table"])
@pytest.mark.parametrize("what", DATA)
def test_rows_that_no_table_holds_are_refused_with_nothing_changed(what: str, write: str, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    table.insert(GOOD)
    before = files_below(tmp_path)
    with pytest.raises(LakehouseError):
        getattr(table, write)(DATA[what]())
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    "rows",
    [
        frame(),
        frame(id=pd.Categorical(["a", "b"])),
        frame(n=pd.array([1, None], dtype="Int64")),
        frame(at=pd.Series([NOW, NOW.astimezone(dt.timezone(dt.timedelta(hours=9)))], dtype=object)),
        pa.RecordBatchReader.from_batches(SCHEMA, []),
        frame(at=pd.Series([NOW, NOW.replace(tzinfo=None)], dtype=object)),
    ],
    ids=["frame", "categories", "nullable numbers", "two zones", "no rows", "a zone and none, which is UTC"],
)
def test_rows_that_only_look_strange_are_written_as_they_are(rows: Any, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    before = rows.shape[0] if isinstance(rows, pd.DataFrame) else 0
    table.upsert(rows, options={"hoodie.datasource.write.reconcile.schema": True})
    assert table.to_arrow().num_rows == before
    if before:
        assert table.to_arrow(["at"]).column(0).to_pylist() == [NOW, NOW]


def test_incremental_reads_take_dates_and_datetimes(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", SCHEMA)
    table.insert(GOOD)
    day = dt.datetime.now(dt.timezone.utc)
    assert table.to_arrow(query="incremental", begin=day - dt.timedelta(days=1), end=day + dt.timedelta(days=1)).num_rows == 1
    assert table.to_arrow(query="incremental", begin=day + dt.timedelta(days=1)).num_rows == 0
    assert table.to_arrow(query="incremental", begin=dt.date(1, 1, 1)).num_rows == 1
