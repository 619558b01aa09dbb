"""Interface between the adapter and the place where Spark runs."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.credentials import LakehouseCredentials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Environment(ABC):
    """Gives every dbt thread its own session of one Spark. Thread-safe."""

    def __init__(self, credentials: LakehouseCredentials) -> None:
        self.credentials = credentials
        self._lock = threading.RLock()

    @abstractmethod
    def start_early(self) -> None:
        """Start Spark in the background, if it is started here. Errors appear with the first session."""

    @abstractmethod
    def end_early(self) -> None:
        """Stop what `start_early` began if no statement needed it. The command has ended, but its process may run another."""

    @abstractmethod
    def session(self, allow_files: bool = True) -> SparkSession:
        """Session for one connection, with its own SET, temporary views and current database. The first may start Spark."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Lines for `dbt debug`; may start Spark."""

    @abstractmethod
    def release(self, session: SparkSession, *, as_new: bool, allow_files: bool = True) -> None:
        """Give back a session; its connection is closed. `as_new`: remove everything its statements left, except `allow_files`."""

    @abstractmethod
    def before_python(self) -> None:
        """Prepare Spark for anything that a Python model does with it."""

    def session_conf(self) -> dict[str, str]:
        """Settings of every session. Only those that a running session may change belong here."""
        return {"spark.sql.session.timeZone": self.credentials.spark_config.get("spark.sql.session.timeZone", "UTC")}

    @abstractmethod
    def tag(self, session: SparkSession, tag: str) -> None:
        """Mark the jobs that this thread starts from now on, so that `interrupt` finds them."""

    @abstractmethod
    def untag(self, session: SparkSession, tag: str) -> None:
        """Stop marking jobs."""

    @abstractmethod
    def interrupt(self, session: SparkSession, tag: str) -> None:
        """Cancel what runs for this session; called from another thread."""


class ClassicEnvironment(Environment):
    """Environment over a SparkContext of this process."""

    @abstractmethod
    def root_session(self) -> SparkSession:
        """Parent of all sessions; started on the first call."""

    def __init__(self, credentials: LakehouseCredentials) -> None:
        super().__init__(credentials)
        self._idle: dict[bool, list[SparkSession]] = {True: [], False: []}

    def session(self, allow_files: bool = True) -> SparkSession:
        """A child session: one that was given back as new, or a new one."""
        with self._lock:
            root = self.root_session()
            idle = self._idle[allow_files]
            while idle:
                known = idle.pop()
                if known.sparkContext is root.sparkContext:  # otherwise its Spark has ended
                    return known
            child = root.newSession()
        for key, value in self.session_conf().items():
            child.conf.set(key, value)
        return child

    def release(self, session: SparkSession, *, as_new: bool, allow_files: bool = True) -> None:
        if as_new:
            with self._lock:
                self._idle[allow_files].append(session)

    def tag(self, session: SparkSession, tag: str) -> None:
        session.sparkContext.addJobTag(tag)

    def untag(self, session: SparkSession, tag: str) -> None:
        session.sparkContext.removeJobTag(tag)

    def interrupt(self, session: SparkSession, tag: str) -> None:
        """Queries are found by their session, since Spark's own threads run some and do not know the tag; other jobs by the tag."""
        session.interruptAll()
        session.sparkContext.cancelJobsWithTag(tag)


def quiet_python_loggers() -> None:
    """Silence PySpark's log of every error as one long JSON line; dbt shows the error itself."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
