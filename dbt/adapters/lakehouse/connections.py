"""Connections: one thread session each, opened by the first statement. There are no transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import dbt_error, java_stack, response_of
from dbt.adapters.lakehouse.bridge.spark_errors import missing_relation
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.reading.missing import missing_text
from dbt.adapters.lakehouse.work.audit_registry import held_tables, note_statement
from dbt.adapters.lakehouse.work.cursor import Cursor
from dbt.adapters.lakehouse.work.session import ThreadSession, of_hook

logger = AdapterLogger("Lakehouse")


class LakehouseConnectionManager(SQLConnectionManager):
    """Connections of dbt's threads; each has a session of its own."""

    TYPE = "lakehouse"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Give the connection its thread session. Spark starts with the first statement, not here."""
        if connection.state != ConnectionState.OPEN:
            connection.handle = ThreadSession(connection.credentials, held_tables(str(connection.name)))
            connection.state = ConnectionState.OPEN
        return connection

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turn engine and Spark errors into dbt's by the table in `bridge`, and mark those from a hook."""
        try:
            yield
        except Exception as error:
            mapped = self._told(dbt_error(error))
            if mapped is error:
                raise
            logger.debug(f"Error while running:\n{sql}\n{error}\n{java_stack(error)}".rstrip())
            raise mapped from error

    def _told(self, error: Exception) -> Exception:
        """The error with the nearest names if a relation is missing, and with the hook that raised it."""
        connection = self.get_if_exists()
        if not isinstance(error, DbtRuntimeError) or connection is None:
            return error
        text, given = str(error.msg), connection.credentials
        if missing := missing_relation(text):
            house = Warehouse(given.warehouse, options=given.hoodie, storage_options=given.storage_options)
            text = missing_text(house, missing, given.schema)
        if connection.state == ConnectionState.OPEN and (hook := connection.handle.hook):
            text = of_hook(hook, text)
        error.msg = text
        return error

    def add_query(self, sql: str, *args: Any, **kwargs: Any) -> tuple[Connection, Any]:
        note_statement(str(self.get_thread_connection().name), sql)
        comment = getattr(getattr(self.query_header, "comment", None), "query_comment", None)
        self.session().header = f"/* {comment.strip()} */\n" if comment else ""
        return super().add_query(sql, *args, **kwargs)

    @classmethod
    def get_response(cls, cursor: Cursor) -> AdapterResponse:
        if cursor.result is not None:
            return response_of(cursor.result)
        rows = cursor.rowcount if cursor.description is not None else None
        return AdapterResponse(_message="OK", code="OK", rows_affected=rows)

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """A cursor's type code already is Spark's type name."""
        return str(type_code)

    def session(self) -> ThreadSession:
        """Thread session of this thread's connection."""
        handle: ThreadSession = self.get_thread_connection().handle
        return handle

    def begin(self) -> None:
        """Nothing to begin: every write is one commit of its own."""

    def commit(self) -> None:
        """There is nothing to commit."""

    def rollback_if_open(self) -> None:
        """There is nothing to roll back: a failed write leaves its table unchanged."""

    def clear_transaction(self) -> None:
        """There is no transaction."""

    def add_begin_query(self, *args: Any, **kwargs: Any) -> None:
        """No transactions."""

    def add_commit_query(self, *args: Any, **kwargs: Any) -> None:
        """No transactions."""

    @classmethod
    def _rollback_handle(cls, connection: Connection) -> None:
        """No transactions."""

    @classmethod
    def _close_handle(cls, connection: Connection) -> None:
        handle: ThreadSession | None = connection.handle
        if handle is not None:
            handle.close()
