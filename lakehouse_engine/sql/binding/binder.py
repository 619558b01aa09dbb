"""Binds statements with stored views: a view's text is bound like a statement, down to tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakehouse_engine.errors import SqlError, UnsupportedSqlError
from lakehouse_engine.sql.binding.bind import Bound, Pin, bind
from lakehouse_engine.sql.binding.enclosing import OnResult
from lakehouse_engine.sql.binding.meta_columns import MetaColumns, Relations, names_meta_columns
from lakehouse_engine.sql.binding.needs import Needs
from lakehouse_engine.sql.grammar.references import Parts, Scan, folded


@dataclass(frozen=True, slots=True)
class ViewText:
    """A stored view: its query, and its column names if it renames them."""

    sql: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Names:
    """What the binder asks; parts are as written, without `spark_catalog`.

    `knows`: is it a table or stored view. `stored_view`: the view's text, None for a table. `pin_table`: temporary view of a snapshot or of
    changes. `pin_query`: temporary view over a query that reads only temporary views, with these column names (empty: the query's own).
    `is_table`: is it a table of the warehouse, with meta columns.
    """

    knows: Callable[[Parts], bool]
    stored_view: Callable[[Parts], ViewText | None]
    pin_table: Callable[[Pin], str]
    pin_query: Callable[[str, tuple[str, ...]], str]
    is_table: Callable[[Parts], bool] = lambda parts: False


def bind_statement(text: str, names: Names) -> Bound:
    """Bind every read of `text`; a table that several views read alike is pinned once.

    Raises `UnsupportedSqlError` for what cannot be bound, `SqlError` for views that read each other in a cycle.
    """
    return _Binder(names).bind(text, ())


def bind_pin(pin: Pin, names: Names) -> str:
    """Temporary view of one thing to read, down to tables. Raises as `bind_statement`."""
    return _Binder(names).view_for(pin, ())


class _Binder:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.pinned: dict[tuple[Parts, Pin, Needs], str] = {}

    def bind(self, text: str, path: tuple[Parts, ...], result: OnResult | None = None, *, with_meta: bool = False) -> Bound:
        """`with_meta`: the result passes meta columns on."""

        def meta_of(found: Scan) -> MetaColumns | None:
            if not with_meta and not names_meta_columns(text):
                return None
            return MetaColumns(text, found, Relations(self.names.is_table, self._view_text), handed_on=with_meta, within=path)

        return bind(text, self.names.knows, lambda pin: self.view_for(pin, path), result, meta_of=meta_of)

    def _view_text(self, parts: Parts) -> str | None:
        view = self.names.stored_view(parts) if self.names.knows(parts) else None
        return None if view is None or view.columns else view.sql

    def view_for(self, pin: Pin, path: tuple[Parts, ...]) -> str:
        """Temporary view of what `pin` reads; `path` are the views around it."""
        view = None if pin.files is not None else self.names.stored_view(pin.parts)
        # A view's own text determines its columns.
        key = (folded(pin.parts), replace(pin, parts=()), pin.needs if view is None else pin.needs.of_rows())
        if key not in self.pinned:
            self.pinned[key] = self.names.pin_table(pin) if view is None else self._stored(pin, view, path)
        return self.pinned[key]

    def _stored(self, pin: Pin, view: ViewText, path: tuple[Parts, ...]) -> str:
        name = ".".join(pin.parts)
        if pin.as_of is not None or pin.changes is not None or pin.read_optimized or pin.deleted:
            read = "times, changes, base files and deleted rows are read"
            raise UnsupportedSqlError(f"{name} is a view: {read} from the tables under it", relation=name)
        own = folded(pin.parts)
        if own in path:
            circle = " -> ".join(".".join(parts) for parts in (*path[path.index(own) :], own))
            raise SqlError(f"the view {name} reads itself: {circle}; create one of them anew without the circle", relation=name)
        result = None if pin.needs.rows is None else OnResult(pin.needs.rows, view.columns)
        bound = self.bind(view.sql, (*path, own), result, with_meta=pin.meta_columns)
        return self.names.pin_query(bound.text, view.columns)
