"""The Spark session of a Python model, in which names mean the warehouse's tables and views.

The tables are not in Spark's catalog, so `session.sql`, `session.table`, `session.read.table` and `session.catalog.tableExists` ask the
warehouse first. Everything that they read has the same state as `dbt.ref`. Everything else is the thread's own session, and so are the
DataFrames.
"""

from __future__ import annotations

import string
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from dbt_common.exceptions import DbtRuntimeError

from lakehouse_engine import api

if TYPE_CHECKING:
    from dbt.adapters.lakehouse.bridge.warehouse import Warehouse

_OWN = frozenset({"sql", "table", "read", "catalog"})


def model_session(warehouse: Warehouse) -> Any:
    """Session of `warehouse` for a Python model; also an instance of the real session's class."""
    kind = _session_class(type(warehouse.session))  # type: ignore[arg-type]  # mypy takes no class for hashable
    session = object.__new__(kind)
    object.__setattr__(session, "_names", _Names(warehouse))
    return session


class _Names:
    """Resolves names for a model."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse, self.spark = warehouse, warehouse.session

    def sql(self, text: str, args: Any, named: Mapping[str, Any]) -> Any:
        """Run a statement: a DataFrame, without columns if the statement returns no rows, as in Spark."""
        if named:
            text = _Formatter().vformat(text, (), named)
        answer = self.warehouse.sql(text, args)
        return answer if hasattr(answer, "toArrow") else self.spark.sql("select 1").select()

    def table(self, name: str) -> Any | None:
        """Rows of a table or view of the warehouse; None if it has none of that name (it may be Spark's).

        A source that reads files is named by the call that reads them.
        """
        if api.sql.is_files_call(name):
            return self.warehouse.sql(f"select * from {name}")
        parts = self.warehouse.named(name)
        return None if parts is None else self.warehouse.sql(f"select * from {'.'.join(map(_quoted, parts))}")


@cache
def _session_class(kind: type[Any]) -> type[Any]:
    class ModelSession(kind):  # type: ignore[misc]
        """Delegates attributes to the real session, except those in `_OWN`."""

        def __getattribute__(self, name: str) -> Any:
            if name in _OWN or name == "__class__":
                return object.__getattribute__(self, name)
            return getattr(object.__getattribute__(self, "_names").spark, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(object.__getattribute__(self, "_names").spark, name, value)

        def __del__(self) -> None:
            """Do nothing: stopping a Spark Connect session would end a connection that belongs to others."""

        def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:  # noqa: N803 - Spark's name
            return object.__getattribute__(self, "_names").sql(sqlQuery, args, kwargs)

        def table(self, tableName: str) -> Any:  # noqa: N803
            names = object.__getattribute__(self, "_names")
            found = names.table(tableName)
            return names.spark.table(tableName) if found is None else found

        @property
        def read(self) -> Any:
            names = object.__getattribute__(self, "_names")
            reader = names.spark.read
            reader.__class__ = _reader_class(type(reader))  # type: ignore[arg-type]  # likewise
            reader._lakehouse_names = names
            return reader

        @property
        def catalog(self) -> Any:
            names = object.__getattribute__(self, "_names")
            catalog = type(names.spark.catalog)(names.spark)
            catalog.__class__ = _catalog_class(type(catalog))  # type: ignore[arg-type]  # likewise
            catalog._lakehouse_names = names
            return catalog

    return ModelSession


@cache
def _reader_class(kind: type[Any]) -> type[Any]:
    class ModelReader(kind):  # type: ignore[misc]
        def table(self, tableName: str) -> Any:  # noqa: N803
            found = self._lakehouse_names.table(tableName)
            return super().table(tableName) if found is None else found

    return ModelReader


@cache
def _catalog_class(kind: type[Any]) -> type[Any]:
    class ModelCatalog(kind):  # type: ignore[misc]
        def tableExists(self, tableName: str, dbName: str | None = None) -> bool:  # noqa: N802, N803
            name = tableName if dbName is None else f"{_quoted(dbName)}.{_quoted(tableName)}"
            if self._lakehouse_names.warehouse.named(name) is not None:
                return True
            return bool(super().tableExists(tableName) if dbName is None else super().tableExists(tableName, dbName))

    return ModelCatalog


class _Formatter(string.Formatter):
    """`{name}` in `session.sql(text, name=...)`: a DataFrame becomes a session view, a text a literal."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value, first = super().get_field(field_name, args, kwargs)
        return _as_sql(field_name, value), first


def _as_sql(name: str, value: Any) -> Any:
    from pyspark.sql import Column, DataFrame

    if isinstance(value, DataFrame):
        # Keep the views: a Spark Connect frame resolves its names when it runs. The session ends with the model.
        view = f"__dbt_python_{uuid.uuid4().hex}"
        value.createOrReplaceTempView(view)
        return view
    if isinstance(value, Column):
        raise DbtRuntimeError(f"session.sql(..., {name}=<a Column>): write the column's name into the text, or use DataFrame methods")
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return value


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
