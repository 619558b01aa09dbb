"""The Spark session that a Python model is given: names of the warehouse mean its tables and views.

Tables of a warehouse are not in Spark's catalog, so `session.sql`, `session.table`, `session.read.table` and
`session.catalog.tableExists` ask the warehouse first; all that they read of it is of one moment, that of `dbt.ref`. Everything else is the
thread's own session, and DataFrames are of it.
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
    """The session of `warehouse` as a Python model sees it; an instance of its class."""
    kind = _session_class(type(warehouse.session))  # type: ignore[arg-type]  # mypy takes no class for hashable
    session = object.__new__(kind)
    object.__setattr__(session, "_names", _Names(warehouse))
    return session


class _Names:
    """What names mean to a model."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse, self.spark = warehouse, warehouse.session

    def sql(self, text: str, args: Any, named: Mapping[str, Any]) -> Any:
        """A DataFrame, without columns for a statement that answers with no rows, as in Spark."""
        if named:
            text = _Formatter().vformat(text, (), named)
        answer = self.warehouse.sql(text, args)
        return answer if hasattr(answer, "toArrow") else self.spark.sql("select 1").select()

    def table(self, name: str) -> Any | None:
        """The rows of a table or view of the warehouse; None where it has none of the name, which may be one of Spark's.

        A source that reads files is named by the call that reads them.
        """
        if api.sql.is_files_call(name):
            return self.warehouse.sql(f"select * from {name}")
        parts = self.warehouse.named(name)
        return None if parts is None else self.warehouse.sql(f"select * from {'.'.join(map(_quoted, parts))}")


@cache
def _session_class(kind: type[Any]) -> type[Any]:
    class ModelSession(kind):  # type: ignore[misc]
        """Attributes are those of the session that it stands for, but for `_OWN`."""

        def __getattribute__(self, name: str) -> Any:
            if name in _OWN or name == "__class__":
                return object.__getattribute__(self, name)
            return getattr(object.__getattribute__(self, "_names").spark, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(object.__getattribute__(self, "_names").spark, name, value)

        def __del__(self) -> None:
            """A session of Spark Connect would end its connection, which is not this one's."""

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
    """`{name}` in the text of `session.sql(text, name=...)`: a DataFrame as a view of the session, a text as a literal."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value, first = super().get_field(field_name, args, kwargs)
        return _as_sql(field_name, value), first


def _as_sql(name: str, value: Any) -> Any:
    from pyspark.sql import Column, DataFrame

    if isinstance(value, DataFrame):
        # Kept: a DataFrame on Spark Connect resolves its names when it runs. The session is not used again after the model.
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
