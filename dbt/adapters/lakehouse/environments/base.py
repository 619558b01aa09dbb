"""The seam between the adapter and the place that Spark runs in."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from dbt.adapters.lakehouse.credentials import LakehouseCredentials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Environment(ABC):
    """Gives every dbt thread a session of its own over one Spark. Safe to call from many threads."""

    def __init__(self, credentials: LakehouseCredentials) -> None:
        self.credentials = credentials
        self._lock = threading.RLock()

    @abstractmethod
    def start_early(self) -> None:
        """Begin to start Spark, where it is started here: it will be asked for. What goes wrong comes with the first session."""

    @abstractmethod
    def end_early(self) -> None:
        """End what `start_early` began, if no statement asked for it: the command is over, but its process may go on, and start another."""

    @abstractmethod
    def root_session(self) -> SparkSession:
        """The session that the others are children of; started on the first call."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Lines for `dbt debug`; may start Spark."""

    def session(self) -> SparkSession:
        """A new child session: its SET, temporary views and current database are its own."""
        with self._lock:
            root = self.root_session()
            child = root.newSession()
        for key, value in self.session_conf().items():
            child.conf.set(key, value)
        return child

    def session_conf(self) -> dict[str, str]:
        """Settings of every child session. Only those that Spark lets a running session change belong here."""
        return {"spark.sql.session.timeZone": self.credentials.spark_config.get("spark.sql.session.timeZone", "UTC")}

    def tag(self, session: SparkSession, tag: str) -> None:
        """Mark the jobs that this thread starts from here on, so that `interrupt` finds them."""
        session.sparkContext.addJobTag(tag)

    def untag(self, session: SparkSession, tag: str) -> None:
        session.sparkContext.removeJobTag(tag)

    def interrupt(self, session: SparkSession, tag: str) -> None:
        """Cancel what runs for this session; called from another thread than its own.

        Queries are found by their session (some are run by threads of Spark's, which do not know the tag), other jobs by the tag.
        """
        session.interruptAll()
        session.sparkContext.cancelJobsWithTag(tag)
