"""DB-API cursor for dbt over `Lakehouse.sql`. Statements run on `execute`, bindings are parameters, rows are typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse_engine import api

if TYPE_CHECKING:
    import pyarrow as pa

    from dbt.adapters.lakehouse.work.session import ThreadSession

Description = list[tuple[str, str, None, None, None, None, bool]]


class Cursor:
    """Result of one call (PEP 249). A text with several statements runs them all and keeps the last result."""

    arraysize = 1

    def __init__(self, session: ThreadSession) -> None:
        self._session = session
        self._table: pa.Table | None = None
        self._position = 0
        self.description: Description | None = None
        self.rowcount = -1
        self.result: Any = None
        """The engine's write result, if the statement was a write."""

    def execute(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] | None = None) -> Cursor:
        """Run `sql`. `bindings` fill its `?` (a sequence) or `:name` (a mapping) markers and are never put into the text."""
        self._table, self._position, self.description, self.result = None, 0, None, None
        header = self._session.header
        if header and sql.startswith(header):
            sql = header.replace("\n", " ") + sql[len(header) :]  # on the first line, so that errors keep the user's line numbers
        for statement in api.sql.split_statements(sql):
            self._take(self._session.run(statement, bindings or None))
        return self

    def _take(self, answer: Any) -> None:
        self._table, self.description, self.result = None, None, None
        if answer is None or not hasattr(answer, "toArrow"):
            # FROM ... INSERT ... INSERT makes several commits; the last one is the result, as for several statements.
            self.result = answer[-1] if isinstance(answer, list) else answer
            return
        self._table = api.frames.fetched(answer)
        self.description = [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable) for field in answer.schema.fields
        ]
        self.rowcount = self._table.num_rows

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next `size` rows (default `arraysize`); fewer at the end."""
        return self._next(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._next(None)

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self._next(1)
        return rows[0] if rows else None

    def _next(self, count: int | None) -> list[tuple[Any, ...]]:
        if self._table is None:
            return []
        piece = self._table.slice(self._position, count)
        self._position += piece.num_rows
        columns = [_local(column).to_pylist() for column in piece.columns]
        return list(zip(*columns, strict=False)) if columns else [()] * piece.num_rows

    def close(self) -> None:
        self._table = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _local(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps as dbt's tables hold them: without a zone, as wall time in the session's time zone (default UTC)."""
    import pyarrow.compute as pc
    import pyarrow.types as pat

    return pc.local_timestamp(column) if pat.is_timestamp(column.type) and column.type.tz else column
