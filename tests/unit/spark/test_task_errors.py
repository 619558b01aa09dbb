"""Errors of the engine, out of what Spark says of a failed task."""

from __future__ import annotations

import pytest

from lakehouse_engine.errors import CorruptLogError, LakehouseError, MissingFileError
from lakehouse_engine.spark.tasks.task_errors import engine_error, told_as_raised

SPARK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "slice_reader.py", line 1, in merge
    raise error
{}

\tat org.apache.spark.api.python.BasePythonRunner"""


@pytest.mark.parametrize(
    "error",
    [
        CorruptLogError("the log file 'a, b=c [x]' has lost rows", path="a, [1]", offset=7),
        MissingFileError("the log file is not there: a clean deleted it"),
    ],
)
def test_an_error_of_the_engine_is_raised_as_it_was(error: LakehouseError) -> None:
    text = SPARK.format(f"lakehouse_engine.errors.{type(error).__name__}: {error}")
    with pytest.raises(type(error)) as caught, told_as_raised():
        raise RuntimeError(text)
    assert (caught.value.message, caught.value.context) == (error.message, error.context)
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize("line", ["ValueError: lakehouse_engine.errors.CorruptLogError: no", "lakehouse_engine.errors.Nothing: no"])
def test_other_errors_stay_as_they_are(line: str) -> None:
    assert engine_error(RuntimeError(SPARK.format(line))) is None
    with pytest.raises(KeyError), told_as_raised():
        raise KeyError(line)
