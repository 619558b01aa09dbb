"""One dbt thread's work: its Spark session (started on first need), its warehouse, its job tag."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.lakehouse.bridge import Warehouse, conflict_retries, run_again
from dbt.adapters.lakehouse.credentials import LakehouseCredentials
from dbt.adapters.lakehouse.cursor import Cursor
from dbt.adapters.lakehouse.environments import environment_of

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Source:
    """How a session view is made, after those that it is made of, and the warehouse as it was read for it."""

    makers: Mapping[str, Callable[[Warehouse], None]]
    warehouse: Warehouse


def _makers(named: Mapping[str, _Source]) -> dict[str, Callable[[Warehouse], None]]:
    return {name: maker for source in named.values() for name, maker in source.makers.items()}


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
        self._sources: dict[str, _Source] = {}

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
        if self._named(sql):
            return self.write(sql, lambda warehouse: warehouse.sql(sql, bindings), conflict_retries(self._credentials.hoodie))
        return self.work(lambda warehouse: warehouse.sql(sql, bindings))

    def keep_view(self, name: str, sql: str, make: Callable[[Warehouse], None]) -> None:
        """Have `make` make a session view (of `sql`, where that is what it is of). What was read for it is known from here on."""
        named = self._named(sql)

        def begin(warehouse: Warehouse) -> None:
            pinned = self._as_read(named, warehouse)
            make(pinned)
            self._sources[name.lower()] = _Source({**_makers(named), name.lower(): make}, pinned)

        self.work(begin)

    def forget_view(self, name: str) -> None:
        self._sources.pop(name.lower(), None)

    def write(self, sql: str, job: Callable[[Warehouse], Result], retries: int) -> Result:
        """Run a write of the rows of `sql`. When what was read for them has changed, they are computed again, `retries` times at most."""
        named = self._named(sql)

        def attempt() -> Result:
            return self.work(lambda warehouse: job(self._as_read(named, warehouse)))

        return run_again(attempt, retries, lambda: self.work(lambda warehouse: self._make_anew(named, warehouse)))

    def _as_read(self, named: Mapping[str, _Source], warehouse: Warehouse) -> Warehouse:
        """The warehouse as it was read for these views, which are made anew if they were not of one reading; pinned now for none."""
        found = {id(one): one for one in (self._sources[name].warehouse for name in named)}
        if len(found) == 1:
            return next(iter(found.values()))
        return self._make_anew(named, warehouse)

    def _make_anew(self, named: Mapping[str, _Source], warehouse: Warehouse) -> Warehouse:
        """The views, and those that they are made of, from one new reading, which comes back."""
        pinned = warehouse.pinned()
        for maker in _makers(named).values():
            maker(pinned)
        self._sources.update({name: _Source(source.makers, pinned) for name, source in named.items()})
        return pinned

    def _named(self, sql: str) -> dict[str, _Source]:
        """The views of `keep_view` that a statement names."""
        if not self._sources:
            return {}
        words = set(re.findall(r"\w+", sql.lower()))
        return {name: source for name, source in self._sources.items() if name in words}

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
        self._sources.clear()
