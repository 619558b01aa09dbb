"""Session views of one thread: rows that several statements of a model read, and the reading of the warehouse that they were made by.

A model's rows are one query, which Spark analyses when the view is kept. Whoever reads all of a view gets that very query; Spark learns
of the view by its name only when a statement may read it otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.columns import quoted

Make = Callable[[Warehouse], Any]
"""Makes the rows of a view, by a reading of the warehouse."""
_WHOLE = re.compile(r"\s*select \* from (?:`((?:[^`]|``)+)`|(\w+))\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Source:
    """A view: how it is made, after those that it is made of; the warehouse as it was read for it, and its rows."""

    name: str
    makers: Mapping[str, Make]
    warehouse: Warehouse
    rows: Any


class SessionViews:
    """The views that were kept and not dropped. `in_spark` are those that Spark knows, as they are now or as they were."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._in_spark: dict[str, _Source] = {}

    def keep(self, name: str, sql: str, make: Make, warehouse: Warehouse) -> None:
        """Have `make` make the rows of a view (of `sql`, where that is what it is of), by what the views that it names were read by."""
        named = self._named(sql)
        pinned = self._as_read(named, warehouse)
        self._put(name, {**_makers(named), name: make}, pinned)

    def drop_unseen(self, name: str) -> bool:
        """Drop a view that Spark does not know; False where it may."""
        return name.lower() not in self._in_spark and self._sources.pop(name.lower(), None) is not None

    def drop(self, name: str, warehouse: Warehouse) -> None:
        """Drop a view that Spark may know, also one that was not kept here."""
        self._sources.pop(name.lower(), None)
        self._in_spark.pop(name.lower(), None)
        warehouse.session.catalog.dropTempView(name)

    def names_any(self, sql: str) -> bool:
        return bool(self._named(sql))

    def as_read(self, sql: str, warehouse: Warehouse) -> Warehouse:
        """The warehouse as it was read for the views that a statement names, which are made anew if they were not of one reading.

        Pinned now where it names none.
        """
        return self._as_read(self._named(sql), warehouse)

    def make_anew(self, sql: str, warehouse: Warehouse) -> None:
        """The views that a statement names, and those that they are made of, from one new reading."""
        self._make_anew(self._named(sql), warehouse)

    def rows(self, sql: str, warehouse: Warehouse) -> Any:
        """The rows of a query, its tables read by `warehouse`."""
        whole = _WHOLE.fullmatch(sql)
        source = self._sources.get((whole[1] or whole[2]).replace("``", "`").lower()) if whole else None
        if source is not None and source.warehouse is warehouse:
            return source.rows
        self.show()
        return warehouse.sql(sql)

    def show(self) -> None:
        """Let Spark know all of them: a statement may name them in ways that only Spark understands."""
        for name, source in self._sources.items():
            if self._in_spark.get(name) is not source:
                source.rows.createOrReplaceTempView(quoted(source.name))
                self._in_spark[name] = source

    def hide(self, warehouse: Warehouse) -> None:
        """Let Spark forget them."""
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
        """The views that a statement names."""
        if not self._sources:
            return {}
        words = set(re.findall(r"\w+", sql.lower()))
        return {name: source for name, source in self._sources.items() if name in words}


def _makers(named: Mapping[str, _Source]) -> dict[str, Make]:
    return {name: maker for source in named.values() for name, maker in source.makers.items()}
