"""Questions to Spark's analyser whose answer may be an error."""

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
    """The query, if all its names exist; None otherwise. Raises Spark's errors for queries that are wrong in other ways."""
    with _unlogged():
        try:
            rows = make()
            _ = rows.schema  # Spark Connect resolves nothing before this
        except PySparkException as error:
            if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                raise
            return None
    return rows


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence PySpark's printing of errors: here an error is an answer."""
    thread = threading.get_ident()
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]  # another logger of that name would break PySpark's logging

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != thread

    for logger in loggers:
        logger.addFilter(of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(of_others)
