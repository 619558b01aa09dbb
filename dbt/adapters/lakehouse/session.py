"""One dbt thread's work: its Spark session (started on first need), its warehouse, its job tag."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge import Warehouse
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.cursor import Cursor
from dbt.adapters.lakehouse.environments import environment_of

Result = TypeVar("Result")


class ThreadSession:
    """The handle of a dbt connection. `cancel` may be called from any thread, the rest from the thread that uses it."""

    def __init__(self, credentials: LakehouseCredentials) -> None:
        self._credentials = credentials
        self._environment = environment_of(credentials)
        self._tag = f"dbt-{uuid.uuid4().hex}"
        self._warehouse: Warehouse | None = None
        self._spark: Any = None
        self._cancelled = threading.Event()
        self._working = threading.Event()

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse with a Spark session; the first use starts Spark."""
        if self._warehouse is None:
            self._spark = self._environment.session()
            credentials = self._credentials
            self._warehouse = Warehouse(credentials.warehouse, self._spark, credentials.hoodie, allow_files=credentials.allow_files)
        return self._warehouse

    @property
    def spark(self) -> Any:
        return self.warehouse.spark

    def run(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] | None = None) -> Any:
        """One statement through the engine's router: a DataFrame, a write result, or None."""
        return self.work(lambda warehouse: warehouse.sql(sql, bindings))

    def work(self, job: Callable[[Warehouse], Result]) -> Result:
        """Run `job` so that `cancel` can interrupt its Spark jobs."""
        if self._cancelled.is_set():
            raise DbtRuntimeError("The run was cancelled.")
        self._working.set()
        try:
            warehouse = self.warehouse
            with self._tagged():
                return job(warehouse)
        finally:
            self._working.clear()

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        self._environment.tag(self._spark, self._tag)
        try:
            yield
        finally:
            self._environment.untag(self._spark, self._tag)

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
        self._warehouse, self._spark = None, None
