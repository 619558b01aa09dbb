"""One dbt connection's work: its Spark session (started on first need), its warehouse, its job tag.

dbt closes a connection after each node. A Spark session in which nothing but queries and writes of tables ran is as good as new then, and
the next connection gets it: to make one, and to learn its settings anew, costs as much as a small query.
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
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.bridge.words import leaves_session
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.environments import environment_of
from dbt.adapters.lakehouse.work.cursor import Cursor
from dbt.adapters.lakehouse.work.views import Make, SessionViews
from lakehouse_engine.api.options import conflict_retries

Result = TypeVar("Result")
logger = AdapterLogger("Lakehouse")


class ThreadSession:
    """The handle of a dbt connection. `cancel` may be called from any thread, the rest from the thread that uses it.

    `held` are tables that the connection's node sees before others do.
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
        """The hook whose statements run: `pre-hook` or `post-hook`."""
        self.header = ""
        """The comment that dbt puts before a statement, as lines of its own."""

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse with a Spark session; the first use starts Spark."""
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
        """One statement through the engine's router: a DataFrame, a write result, or None."""

        def attempt(warehouse: Warehouse) -> Any:
            self._views.show()
            return warehouse.sql(sql, bindings)

        if self._views.names_any(sql):
            return self.write(sql, attempt, conflict_retries(self._credentials.hoodie))
        self._note(sql)
        return self.work(attempt)

    def keep_view(self, name: str, sql: str, make: Make | None = None) -> None:
        """Keep a session view of a query, or of the rows that `make` makes. What was read for it is known from here on."""
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
        """Run a write of the rows of `sql`. When what was read for them has changed, they are computed again, `retries` times at most."""
        self._note(sql)

        def attempt() -> Result:
            return self.work(lambda warehouse: job(self._views.as_read(sql, warehouse)))

        return run_again(attempt, retries, lambda: self.work(lambda warehouse: self._views.make_anew(sql, warehouse)))

    def rows(self, sql: str, warehouse: Warehouse) -> Any:
        """The rows of a query, for a job of `write`."""
        return self._views.rows(sql, warehouse)

    def _note(self, sql: str) -> None:
        """Remember a statement that may leave something in the Spark session: a setting, a function, a view, a variable."""
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
        """Mark the jobs of this thread, until the connection is closed: each mark is a call of the JVM."""
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
        """Interrupt what runs, and what the running statement still starts: a write is several jobs, and there may be none just now."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt_until_idle, name=f"cancel-{self._tag}", daemon=True).start()

    def _interrupt_until_idle(self) -> None:
        while self._working.is_set():
            if self._spark is not None:
                self._environment.interrupt(self._spark, self._tag)
            time.sleep(0.5)

    def close(self) -> None:
        """Forget the session; Spark itself stays for the process."""
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
    """The text of an error of a hook, which says so once."""
    return text if text.startswith(f"in a {kind}: ") else f"in a {kind}: {text}"
