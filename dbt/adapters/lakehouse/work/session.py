"""Work of one dbt connection: its Spark session (started on first need), warehouse and job tag.

dbt closes the connection after each node. If only queries and table writes ran in its Spark session, the next connection reuses the
session, because making a new one costs as much as a small query.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge.outcomes import run_again
from dbt.adapters.lakehouse.bridge.shapes import HeldTables
from dbt.adapters.lakehouse.bridge.validation import leaves_session
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import environment_of
from dbt.adapters.lakehouse.work.cursor import Cursor
from dbt.adapters.lakehouse.work.views import Make, SessionViews
from lakehouse_engine.api.options import conflict_retries

Result = TypeVar("Result")
logger = AdapterLogger("Lakehouse")


class ThreadSession:
    """Handle of a dbt connection. `cancel` may be called from any thread, the rest from the thread that uses it.

    `held` are tables that only the connection's node sees.
    """

    def __init__(self, credentials: LakehouseCredentials, held: HeldTables | None = None) -> None:
        self._credentials = credentials
        self._held = held
        self._environment = environment_of(credentials)
        self._tag = f"dbt-{uuid.uuid4().hex}"
        self._warehouse: Warehouse | None = None
        self._spark: Any = None
        self._cancelled = threading.Event()
        self._working = threading.Event()
        self._views = SessionViews()
        self._as_new = True
        self._tagged: int | None = None
        self.hook: str | None = None
        """Hook whose statements run: `pre-hook` or `post-hook`."""
        self.header = ""
        """Comment that dbt puts before a statement, on lines of its own."""

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse with a Spark session; first use starts Spark."""
        if self._warehouse is None:
            credentials = self._credentials
            self._spark = self._environment.session(credentials.allow_files)
            self._warehouse = Warehouse(
                credentials.warehouse,
                self._spark,
                credentials.hoodie,
                allow_files=credentials.allow_files,
                storage_options=credentials.storage_options,
                held=self._held,
                catalog=credentials.catalog,
                catalogs={name: place.given for name, place in credentials.catalogs.items()},
            )
        return self._warehouse

    def run(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """Run one statement through the engine's router: a DataFrame, a write result, or None."""

        def attempt(warehouse: Warehouse) -> Any:
            self._views.show()
            return warehouse.sql(sql, bindings)

        if self._views.names_any(sql):
            return self.write(sql, attempt, conflict_retries(self._credentials.hoodie))
        self._note(sql)
        return self.work(attempt)

    def keep_view(self, name: str, sql: str, make: Make | None = None) -> None:
        """Make a session view of a query, or of the rows that `make` returns. What it reads is recorded from then on."""
        self._note(sql)

        def rows(warehouse: Warehouse) -> Any:
            if make is None:
                return self._views.rows(sql, warehouse)
            self._views.show()
            return make(warehouse)

        self.work(lambda warehouse: self._views.keep(name, sql, rows, warehouse))

    def drop_view(self, name: str) -> None:
        if not self._views.drop_unseen(name):
            self.work(lambda warehouse: self._views.drop(name, warehouse))

    def write(self, sql: str, job: Callable[[Warehouse], Result], retries: int) -> Result:
        """Write the rows of `sql`. If what they read has changed, compute them again, at most `retries` times."""
        self._note(sql)

        def attempt() -> Result:
            return self.work(lambda warehouse: job(self._views.as_read(sql, warehouse)))

        return run_again(attempt, retries, lambda: self.work(lambda warehouse: self._views.make_anew(sql, warehouse)))

    def rows(self, sql: str, warehouse: Warehouse) -> Any:
        """Rows of a query, for a job of `write`."""
        return self._views.rows(sql, warehouse)

    def _note(self, sql: str) -> None:
        """Record a statement that may leave something in the Spark session: a setting, function, view or variable."""
        self._as_new = self._as_new and leaves_session(sql)

    def work(self, job: Callable[[Warehouse], Result]) -> Result:
        """Run `job` so that `cancel` can interrupt its Spark jobs."""
        if self._cancelled.is_set():
            raise DbtRuntimeError("The run was cancelled.")
        self._working.set()
        try:
            warehouse = self.warehouse
            self._tag_thread()
            return job(warehouse)
        except BaseException:
            self._as_new = False
            raise
        finally:
            self._working.clear()

    def _tag_thread(self) -> None:
        """Tag this thread's jobs until the connection closes; each tag is a call to the JVM."""
        if self._tagged != threading.get_ident():
            self._environment.tag(self._spark, self._tag)
            self._tagged = threading.get_ident()

    def _untag_thread(self) -> None:
        if self._tagged == threading.get_ident():
            self._environment.untag(self._spark, self._tag)
        self._tagged = None

    def cursor(self) -> Cursor:
        return Cursor(self)

    def cancel(self) -> None:
        """Interrupt running jobs, and those that the statement still starts: a write has several, with pauses between."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt_until_idle, name=f"cancel-{self._tag}", daemon=True).start()

    def _interrupt_until_idle(self) -> None:
        while self._working.is_set():
            if self._spark is not None:
                self._environment.interrupt(self._spark, self._tag)
            time.sleep(0.5)

    def close(self) -> None:
        """Drop the session. Spark keeps running for the process."""
        warehouse, self._warehouse = self._warehouse, None
        as_new = self._as_new and not self._cancelled.is_set()
        try:
            self._untag_thread()
            if warehouse is not None and as_new:
                self._views.hide(warehouse)
                warehouse.forget_reads()
            if self._spark is not None:
                self._environment.release(self._spark, as_new=as_new, allow_files=self._credentials.allow_files)
        except Exception as error:  # noqa: BLE001 - the node is done; a Spark that is gone shows where it is asked for something
            logger.debug(f"A Spark session is not used again: {error}")
        self._spark = None
        self._views.clear()


def of_hook(kind: str, text: str) -> str:
    """Error text that says once that it comes from a hook."""
    return text if text.startswith(f"in a {kind}: ") else f"in a {kind}: {text}"
