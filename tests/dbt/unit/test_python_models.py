"""What a Python model may return and ask for, without a Spark."""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.work.model_packages import check_packages
from dbt.adapters.lakehouse.work.model_rows import as_frame, plain_type
from dbt.adapters.lakehouse.work.model_session import _Formatter

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})


class Spark:
    """Gives back what it is to make a DataFrame of."""

    def createDataFrame(self, rows: Any) -> Any:
        return rows


class Limiting:
    """The same, of which what is limited is left."""

    def createDataFrame(self, rows: pa.Table) -> Any:
        return SimpleNamespace(limit=lambda number: rows.slice(0, number))


class Stream:
    """Rows of a library that is not known by name."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


class OnSpark:
    def to_spark(self) -> Any:
        return ROWS


@pytest.mark.parametrize(
    "answer",
    [ROWS, ROWS.to_batches()[0], ROWS.to_reader(), Stream(), OnSpark()],
    ids=["table", "batch", "reader", "stream", "on spark"],
)
def test_rows_are_taken_in_every_arrow_form(answer: Any) -> None:
    assert as_frame(answer, Spark(), "model.x").equals(ROWS)


@pytest.mark.parametrize("form", [pa.Table, pa.RecordBatchReader])
def test_rows_behind_a_part_without_any_are_in_one_piece_with_the_others(form: Any) -> None:
    """Spark leaves out what comes behind such a part."""
    rows = pa.concat_tables([ROWS, ROWS.slice(0, 0), ROWS])
    frame = as_frame(rows if form is pa.Table else rows.to_reader(), Spark(), "model.x")
    assert [batch.num_rows for batch in frame.to_batches()] == [2 * ROWS.num_rows]


def test_pandas_stays_pandas() -> None:
    frame = pd.DataFrame({"id": [1]})
    assert as_frame(frame, Spark(), "model.x") is frame


def test_pandas_without_rows_keep_their_columns() -> None:
    frame = pd.DataFrame({"id": pd.array([], dtype="int64"), "at": pd.to_datetime([], utc=True), "name": []}, columns=["id", "at", "name"])
    frame["name"] = frame["name"].astype(object)
    found = as_frame(frame, Limiting(), "model.x")
    assert found.num_rows == 0
    assert found.schema == pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("name", pa.null())])


def test_polars_frames_are_taken_and_lazy_ones_collected() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    assert as_frame(frame, Spark(), "model.x").equals(ROWS)
    assert as_frame(frame.lazy(), Spark(), "model.x").equals(ROWS)


def test_types_that_are_other_forms_of_sparks_are_brought_to_those() -> None:
    table = pa.table(
        {
            "category": pa.array(["a", "b", "a"]).dictionary_encode(),
            "large": pa.array(["a", None, "c"], pa.large_string()),
            "unsigned": pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "at": pa.array([1, 2, 3], pa.timestamp("ns", tz="UTC")),
            "nested": pa.array([[{"x": 1}], [], None], pa.large_list(pa.struct([("x", pa.uint8())]))),
        }
    )
    taken = as_frame(table, Spark(), "model.x")
    assert taken.schema.types == [
        pa.string(),
        pa.string(),
        pa.decimal128(20, 0),
        pa.timestamp("us", tz="UTC"),
        pa.list_(pa.struct([("x", pa.int16())])),
    ]
    assert taken.column("nested").to_pylist() == [[{"x": 1}], [], None]
    assert int(taken.column("unsigned")[2].as_py()) == 2**64 - 1
    assert plain_type(pa.map_(pa.large_string(), pa.uint16())) == pa.map_(pa.string(), pa.int32())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "returned nothing"),
        (42, "returned a builtins.int"),
        ([{"id": 1}], "returned a builtins.list"),
        (pd.Series([1]), "returned a pandas"),
        (pa.array([1]), "returned a pyarrow.lib.Int64Array"),
    ],
    ids=["nothing", "number", "list", "series", "array"],
)
def test_what_is_no_rows_is_refused_by_name(answer: Any, said: str) -> None:
    with pytest.raises(DbtRuntimeError, match=said) as raised:
        as_frame(answer, Spark(), "model.x")
    assert "model.x" in str(raised.value)


def test_what_spark_cannot_take_is_told_with_the_model() -> None:
    class Refusing(Spark):
        def createDataFrame(self, rows: Any) -> Any:
            raise TypeError("no such type")

    with pytest.raises(DbtRuntimeError, match=r"model\.x: Spark cannot take the Table .* no such type"):
        as_frame(ROWS, Refusing(), "model.x")


def test_packages_that_are_there_pass_by_distribution_and_by_module() -> None:
    check_packages("model.x", ["pyarrow", "PyArrow>=1", f"numpy=={version('numpy')}", "dbt-core", "json", "nothing; python_version < '3'"])


def test_packages_that_are_not_there_are_named_all_together() -> None:
    with pytest.raises(DbtRuntimeError) as raised:
        check_packages("model.x", ["pyarrow", "no-such-package-of-anybody", "numpy<1", "two words", "json==9", "no.such.thing"])
    said = str(raised.value)
    for part in ("model.x", "'no-such-package-of-anybody' is not installed", "which is not <1", "'two words' is no requirement", "'json'"):
        assert part in said
    assert "pyarrow" not in said
    assert "pip install" in said


def test_values_in_the_text_of_a_statement_are_literals() -> None:
    text = _Formatter().vformat("select * from t where a = {a} and b = {b} and c = '{{x}}'", (), {"a": r"it's \n", "b": 5})
    assert text == r"select * from t where a = 'it\'s \\n' and b = 5 and c = '{x}'"
