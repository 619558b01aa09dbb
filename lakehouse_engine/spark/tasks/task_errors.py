"""Errors of the engine that executors raise while Spark runs a query: from its text they are made again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lakehouse_engine import errors
from lakehouse_engine.errors import LakehouseError

_RAISED = re.compile(rf"^\s*{re.escape(errors.__name__)}\.(\w+): (.+?)(?: \[(\w+=.*)\])?$", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(.*?)(?:, (?=\w+=)|$)")


@contextmanager
def told_as_raised() -> Iterator[None]:
    """Around what runs Spark jobs: where a task ended with an error of the engine's, that is raised, from Spark's."""
    try:
        yield
    except LakehouseError:
        raise
    except Exception as error:
        raised = engine_error(error)
        if raised is None:
            raise
        raise raised from error


def engine_error(error: BaseException) -> LakehouseError | None:
    """The error of the engine that the text of Spark's ends with; None where it has none."""
    for name, message, fields in reversed(_RAISED.findall(str(error))):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, LakehouseError):
            return kind(message, **dict(_FIELD.findall(fields)))
    return None
