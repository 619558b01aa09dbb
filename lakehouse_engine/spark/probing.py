"""Questions to Spark's analysis whose answer may be an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def resolved(make: Callable[[], DataFrame]) -> DataFrame | None:
    """A query whose names are all there; None where one is not. Raises what Spark does for a query that is wrong otherwise."""
    with _unlogged():
        try:
            rows = make()
            _ = rows.schema  # on Spark Connect nothing is resolved before
        except PySparkException as error:
            if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                raise
            return None
    return rows


@contextmanager
def _unlogged() -> Iterator[None]:
    """PySpark prints every error that it raises: here one is an answer, and no error."""
    thread = threading.get_ident()
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]  # any other logger of that name would break PySpark's own logging

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    for logger in loggers:
        logger.addFilter(of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(of_others)
