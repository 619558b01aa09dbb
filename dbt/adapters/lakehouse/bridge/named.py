"""Errors about SQL text in a config. Spark reports positions in a statement that the user did not write; these name the config."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error
from dbt.adapters.lakehouse.bridge.spark_errors import is_of_spark
from lakehouse_engine.api.errors import SqlError

_PLACE = re.compile(r"; line \d+ pos \d+")


@contextmanager
def in_config(model: str, config: str, text: str) -> Iterator[None]:
    """Make analysis errors raised in this block name the config and its text. Other errors pass through."""
    try:
        yield
    except Exception as error:
        found = dbt_error(error) if is_of_spark(error) or isinstance(error, SqlError) else None
        if not isinstance(found, DbtRuntimeError):
            raise
        raise DbtDatabaseError(f"{model}: {config} ({text}): {without_place(str(found.msg))}") from error


def without_place(message: str) -> str:
    """Spark's message without line and column of the generated statement."""
    return _PLACE.sub("", message)
