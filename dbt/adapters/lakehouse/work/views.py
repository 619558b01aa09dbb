"""Session views of one thread: rows that several statements of a model read, with the warehouse state that they were made from.

A model's rows are one query, analysed when the view is made. Reading all of a view returns that same query. Spark gets the view under its
name only when a statement may read it in another way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted

Make = Callable[[Warehouse], Any]
"""Makes the rows of a view from one reading of the warehouse."""
_WHOLE = re.compile(r"\s*select \* from (?:`((?:[^`]|``)+)`|(\w+))\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Source:
    """A view: its maker, the views below it, the warehouse as it was read, and its rows."""

    name: str
    makers: Mapping[str, Make]
    warehouse: Warehouse
    rows: Any


class SessionViews:
    """Views that were made and not dropped. `in_spark` are those that Spark knows, current or outdated."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._in_spark: dict[str, _Source] = {}

    def keep(self, name: str, sql: str, make: Make, warehouse: Warehouse) -> None:
        """Make a view with the rows of `make` (its SQL is `sql`, if it has one), using the readings of the views that it names."""
        named = self._named(sql)
        pinned = self._as_read(named, warehouse)
        self._put(name, {**_makers(named), name: make}, pinned)

    def drop_unseen(self, name: str) -> bool:
        """Drop a view that Spark does not know; False if Spark may know it."""
        return name.lower() not in self._in_spark and self._sources.pop(name.lower(), None) is not None

    def drop(self, name: str, warehouse: Warehouse) -> None:
        """Drop a view that Spark may know, even one made elsewhere."""
        self._sources.pop(name.lower(), None)
        self._in_spark.pop(name.lower(), None)
        warehouse.session.catalog.dropTempView(name)

    def names_any(self, sql: str) -> bool:
        return bool(self._named(sql))

    def as_read(self, sql: str, warehouse: Warehouse) -> Warehouse:
        """The warehouse as it was read for the views in a statement. Views of different readings are made again.

        Pinned now if the statement names no view.
        """
        return self._as_read(self._named(sql), warehouse)

    def make_anew(self, sql: str, warehouse: Warehouse) -> None:
        """Make the views of a statement, and the views below them, again from one new reading."""
        self._make_anew(self._named(sql), warehouse)

    def rows(self, sql: str, warehouse: Warehouse) -> Any:
        """Rows of a query whose tables `warehouse` reads."""
        whole = _WHOLE.fullmatch(sql)
        source = self._sources.get((whole[1] or whole[2]).replace("``", "`").lower()) if whole else None
        if source is not None and source.warehouse is warehouse:
            return source.rows
        self.show()
        return warehouse.sql(sql)

    def show(self) -> None:
        """Register all views in Spark: a statement may name them in ways that only Spark understands."""
        for name, source in self._sources.items():
            if self._in_spark.get(name) is not source:
                source.rows.createOrReplaceTempView(quoted(source.name))
                self._in_spark[name] = source

    def hide(self, warehouse: Warehouse) -> None:
        """Remove the views from Spark."""
        for source in self._in_spark.values():
            warehouse.session.catalog.dropTempView(source.name)
        self._in_spark.clear()

    def clear(self) -> None:
        self._sources.clear()
        self._in_spark.clear()

    def _put(self, name: str, makers: Mapping[str, Make], warehouse: Warehouse) -> None:
        self._sources[name.lower()] = _Source(name, makers, warehouse, makers[name](warehouse))

    def _as_read(self, named: Mapping[str, _Source], warehouse: Warehouse) -> Warehouse:
        found = {id(one): one for one in (source.warehouse for source in named.values())}
        return next(iter(found.values())) if len(found) == 1 else self._make_anew(named, warehouse)

    def _make_anew(self, named: Mapping[str, _Source], warehouse: Warehouse) -> Warehouse:
        pinned = warehouse.pinned()
        for name, make in _makers(named).items():
            known = self._sources.get(name.lower())
            self._put(name, known.makers if known else {name: make}, pinned)
        return pinned

    def _named(self, sql: str) -> dict[str, _Source]:
        """Views that a statement names."""
        if not self._sources:
            return {}
        words = set(re.findall(r"\w+", sql.lower()))
        return {name: source for name, source in self._sources.items() if name in words}


def _makers(named: Mapping[str, _Source]) -> dict[str, Make]:
    return {name: maker for source in named.values() for name, maker in source.makers.items()}
