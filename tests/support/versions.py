"""Which table version the tables of a test are made in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lakehouse_engine.model.table_version import TableVersion

_VERSION: ContextVar[TableVersion] = ContextVar("version", default=TableVersion.SIX)


@contextmanager
def tables_of(version: int) -> Iterator[None]:
    """Makers of tables below `tests/support` make them in this version meanwhile."""
    token = _VERSION.set(TableVersion(version))
    try:
        yield
    finally:
        _VERSION.reset(token)


def version_of_new_tables() -> TableVersion:
    return _VERSION.get()
