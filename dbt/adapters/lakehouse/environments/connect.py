"""Sessions of a Spark Connect server. No Spark runs in this process."""

from __future__ import annotations

import atexit
import socket
import time
from typing import TYPE_CHECKING

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtConfigError, DbtRuntimeError

from dbt.adapters.lakehouse.environments.base import Environment, quiet_python_loggers
from lakehouse_engine.api.loading import PYSPARK, load_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.lakehouse.credentials import LakehouseCredentials

logger = AdapterLogger("Lakehouse")

_FIRST_RETRIES = 3
"""How often PySpark repeats the first request to a server that accepts connections; its default takes ten minutes."""
_RETRIES = 6
"""The same for later requests: about a minute, where the default takes ten."""

_NOT_INSTALLED = "method 'connect' needs packages that are not there ({error}): pip install 'dbt-lakehouse[connect]'"
_REFUSED = ("CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG", "INVALID_CONF_VALUE")


class ConnectEnvironment(Environment):
    """`method: connect`. One session per working connection; a released session is cleaned and used again."""

    def __init__(self, credentials: LakehouseCredentials) -> None:
        super().__init__(credentials)
        self._remote = credentials.remote
        self._open: list[SparkSession] = []
        self._idle: list[SparkSession] = []

    def start_early(self) -> None:
        """Nothing to do: the server runs."""

    def end_early(self) -> None:
        """Nothing to do."""

    def before_python(self) -> None:
        """Nothing to do."""

    def session(self, allow_files: bool = True) -> SparkSession:
        """Raises `DbtRuntimeError` if there is no server or the client packages are not installed, `DbtConfigError` for `spark_config`."""
        session = self._cleaned() or self._begun()
        _make_active(session)
        return session

    def _cleaned(self) -> SparkSession | None:
        """A session that a connection gave back, if one can be reused."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        if idle is None or self._is_clean(idle):
            return idle
        self._forget(idle)
        return None

    def _begun(self) -> SparkSession:
        session = self._begin()
        with self._lock:
            self._open.append(session)
            # Callbacks run in reverse order, so this runs before PySpark's own, which would call a dead server again and again.
            atexit.unregister(self._stop_all)
            atexit.register(self._stop_all)
        self._settle(session)
        return session

    def release(self, session: SparkSession, *, as_new: bool, allow_files: bool = True) -> None:
        """Keep the session for the next connection, because a new one would start its own Python workers.

        A session that ran other statements is dropped: not everything they may have left (variables, files) can be found.
        """
        if not as_new:
            self._forget(session)
            return
        with self._lock:
            self._idle.append(session)

    def describe(self) -> dict[str, str]:
        session = self.session()
        try:
            return {"spark": f"{session.version}, Spark Connect server at {self._remote.shown}"}
        finally:
            self.release(session, as_new=True)

    def tag(self, session: SparkSession, tag: str) -> None:
        session.addTag(tag)

    def untag(self, session: SparkSession, tag: str) -> None:
        session.removeTag(tag)

    def interrupt(self, session: SparkSession, tag: str) -> None:
        """Cancel everything that the session runs; it belongs to one connection."""
        session.interruptAll()

    def _begin(self) -> SparkSession:
        load_module(PYSPARK)
        try:
            from pyspark.sql.connect.client.retries import DefaultPolicy
        except ImportError as error:
            raise DbtRuntimeError(_NOT_INSTALLED.format(error=" ".join(str(error).split()))) from error
        from pyspark import SparkContext
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:
            raise DbtRuntimeError("method 'connect' cannot be used in a process that has a SparkContext: PySpark works with one of both.")
        quiet_python_loggers()
        self._find_server()
        session: SparkSession = SparkSession.builder.remote(self._remote.url).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=_FIRST_RETRIES)])
        try:
            session.version  # noqa: B018 - the first question
        except PySparkException as error:
            _stop(session)
            raise DbtRuntimeError(f"The Spark Connect server at {self._remote.shown} does not answer as one: {_short(error)}") from error
        session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        return session

    def _is_clean(self, session: SparkSession) -> bool:
        """Remove what an earlier connection left in its session; False on failure, for example if the server lost the session."""
        from pyspark.errors import PySparkException

        self._find_server()
        usual = session.client.get_retry_policies()
        session.client.set_retry_policies([])
        try:
            session.sql("reset")
            session.catalog.setCurrentCatalog("spark_catalog")
            session.catalog.setCurrentDatabase("default")
            for view in session.sql("show views").where("isTemporary").select("viewName").toArrow().column(0).to_pylist():
                session.catalog.dropTempView(view)
            for name in session.sql("show user functions").toArrow().column(0).to_pylist():
                if "." not in name:
                    session.sql(f"drop temporary function if exists `{name}`")
            session.clearTags()
            self._settle(session)
        except PySparkException as error:
            logger.debug(f"A session of the Spark Connect server is not used again: {_short(error)}")
            return False
        session.client.set_retry_policies(usual)
        return True

    def _forget(self, session: SparkSession) -> None:
        with self._lock:
            self._open = [one for one in self._open if one is not session]
        _stop(session)

    def _find_server(self) -> None:
        """Raise `DbtRuntimeError` if nothing accepts connections. PySpark would try for ten minutes."""
        retries, timeout = self.credentials.connect_retries or 0, self.credentials.connect_timeout or 10
        for attempt in range(retries + 1):
            began = time.monotonic()
            try:
                socket.create_connection((self._remote.host, self._remote.port), timeout).close()
                return
            except OSError as error:
                if attempt == retries:
                    raise DbtRuntimeError(
                        f"There is no Spark Connect server at {self._remote.shown} ({error}). Start one (sbin/start-connect-server.sh of"
                        " Spark), or correct the profile's url; connect_retries and connect_timeout say how long to wait for it."
                    ) from error
            time.sleep(max(0.0, timeout - (time.monotonic() - began)))

    def _settle(self, session: SparkSession) -> None:
        from pyspark.errors import PySparkException

        for key, value in {**self.session_conf(), **self.credentials.spark_config}.items():
            try:
                session.conf.set(key, value)
            except PySparkException as error:  # noqa: PERF203 - a few keys
                self._forget(session)
                if error.getCondition() and str(error.getCondition()).startswith(_REFUSED):
                    raise DbtConfigError(
                        f"spark_config has '{key}', which a session of a Spark Connect server cannot set so ({_short(error)}):"
                        " leave it out, and set it where the server is started."
                    ) from error
                raise

    def _stop_all(self) -> None:
        with self._lock:
            sessions, self._open, self._idle = self._open, [], []
        for session in sessions:
            _stop(session)


def _make_active(session: SparkSession) -> None:
    """Make this session the thread's active one, for models and pandas on Spark.

    PySpark remembers the first session of each thread, even after it has ended, and then finds none.
    """
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    ConnectSession._active_session.session = session
    ConnectSession._set_default_and_active_session(session)  # type: ignore[arg-type]


def _stop(session: SparkSession) -> None:
    """Ask the server to drop a session. If that fails, the server does so itself after an hour."""
    session.client.set_retry_policies([])
    session.stop()


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
